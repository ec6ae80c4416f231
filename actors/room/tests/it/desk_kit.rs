//! A desk to play with: a few workers, and rooms that want credit.

use std::collections::BTreeSet;

use room::{
    Advert, Attempt, Bid, Desk, DeskLimits, Generation, NodeId, Priority, Role, RoomId, Route, Share,
    Verdict, WorkerSpec,
};

use crate::room_kit::{GATEWAY, ms};

pub(crate) const P1: NodeId = NodeId(11);
pub(crate) const P2: NodeId = NodeId(12);
pub(crate) const D1: NodeId = NodeId(21);
pub(crate) const D2: NodeId = NodeId(22);
pub(crate) const M1: NodeId = NodeId(31);
pub(crate) const M2: NodeId = NodeId(32);

pub(crate) const DRAINING: Advert = Advert {
    available_blocks: 100,
    free_slots: 4,
    draining: true,
};

pub(crate) fn attempt(seq: u64) -> Attempt {
    Attempt {
        room: RoomId {
            gateway: GATEWAY,
            seq,
        },
        generation: Generation::FIRST,
    }
}

/// Room `seq` arrived at `seq` milliseconds.
pub(crate) fn bid(seq: u64, positions: u32) -> Bid {
    Bid {
        attempt: attempt(seq),
        priority: Priority(0),
        share: Share::default(),
        arrived: ms(seq),
        begun: false,
        positions,
        max_positions: positions + 16,
        avoid: BTreeSet::new(),
    }
}

pub(crate) fn spec(role: Role) -> WorkerSpec {
    WorkerSpec {
        role,
        blocks: 100,
        block_tokens: 16,
        slots: 4,
    }
}

pub(crate) fn role_of(node: NodeId) -> Role {
    match node.0 / 10 {
        1 => Role::Prefill,
        2 => Role::Decode,
        _ => Role::Mixed,
    }
}

pub(crate) fn desk(nodes: &[NodeId]) -> Desk {
    let mut desk = Desk::new(DeskLimits::default(), ms(0));
    for node in nodes {
        desk.worker_up(ms(0), *node, spec(role_of(*node)));
    }
    desk
}

pub(crate) fn verdicts(desk: &mut Desk, now_ms: u64) -> Vec<Verdict> {
    std::iter::from_fn(|| desk.poll_verdict(ms(now_ms))).collect()
}

/// The rooms that were granted, in order.
pub(crate) fn granted(desk: &mut Desk) -> Vec<u64> {
    let seq = |verdict: Verdict| match verdict {
        Verdict::Granted { attempt, .. } => attempt.room.seq,
        Verdict::Refused { .. } => panic!("{verdict:?}"),
    };
    verdicts(desk, 1).into_iter().map(seq).collect()
}

pub(crate) fn route_of(desk: &mut Desk, bid: Bid) -> Route {
    let wanted = bid.attempt;
    desk.enqueue(bid).unwrap();
    match verdicts(desk, 1)[..] {
        [Verdict::Granted { attempt, route }] if attempt == wanted => route,
        ref other => panic!("{other:?}"),
    }
}
