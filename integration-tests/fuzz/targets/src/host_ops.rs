//! Lists of inputs to a worker's host, in the world of its own tests.

use room::{Attempt, EngineInput, FromOwner, Generation, Job, NodeId, RoomId, StayPhase, TransferInput};

use crate::host_kit::{job, kept};
use crate::host_world::{Op, World, finish};

const GATEWAYS: [NodeId; 2] = [NodeId(1), NodeId(2)];

/// The first byte says whether the worker is mixed; then every four bytes are one thing that happens.
///
/// # Panics
/// Where the world objects: a block is touched by one while another writes it (INV-01), counts do not add up (INV-02), a hold is
/// forgotten, a stay has no deadline, an owner hears tokens twice or something after the end; where a digest or the loss of a gateway
/// leaves what it should end; or where not all is back when every owner has closed and every proof has come (INV-08).
pub fn host_ops(data: &[u8]) {
    let Some((mixed, ops)) = data.split_first() else {
        return;
    };
    let mut world = World::new(mixed % 2 == 1);
    for op in ops.chunks_exact(4).take(400) {
        let op = read([op[0], op[1], op[2], op[3]]);
        world.run(op.clone());
        check_unwanted(&world, &op);
    }
    world.close_all(&GATEWAYS);
    assert_eq!(world.host.stays().count(), 0);
    let now = world.host.occupancy();
    assert!(now.is_quiescent(), "INV-08: {now:?}");
    assert_eq!(world.host.poll_timeout(), None);
    assert_eq!(world.host.slots_used(), 0);
}

/// What an owner does not want any more, or cannot want, has no right to its blocks from that moment.
fn check_unwanted(world: &World, op: &Op) {
    let (gateway, wanted) = match op {
        Op::GatewayLost(gateway) => (gateway, &Vec::new()),
        Op::Digest(gateway, wanted) => (gateway, wanted),
        _ => return,
    };
    for stay in world.host.stays() {
        let attempt = stay.attempt;
        let wanted = wanted.iter().any(|kept| kept.attempt == attempt);
        let unwanted = attempt.room.gateway == *gateway && !wanted;
        assert!(
            !unwanted || stay.phase == StayPhase::Closing,
            "INV-08: {stay:?} after {op:?}"
        );
    }
}

fn attempt(byte: u8) -> Attempt {
    Attempt {
        room: RoomId {
            gateway: GATEWAYS[usize::from(byte >> 7)],
            seq: u64::from(byte >> 4 & 7),
        },
        generation: Generation(1 + u32::from(byte & 15)),
    }
}

fn read([kind, who, a, b]: [u8; 4]) -> Op {
    let about = attempt(who);
    let gateway = GATEWAYS[usize::from(who) % 2];
    match kind % 16 {
        0..=2 => Op::Owner(about, from_owner(a, b)),
        3 => Op::Owner(about, FromOwner::Pull { sampled: 1 }),
        4 => Op::Owner(about, FromOwner::Close),
        5..=8 => Op::Engine(about, engine(a, b)),
        9 | 10 => Op::Transfer(about, transfer(a)),
        11 => Op::Stray(about, engine(a, b)),
        12 => Op::Digest(
            gateway,
            vec![kept(attempt(a), u32::from(b)), kept(attempt(b), u32::from(a))],
        ),
        13 => match a % 16 {
            0 => Op::EngineDown,
            1 => Op::Drain,
            2..=5 => Op::GatewayLost(gateway),
            _ => Op::Digest(gateway, Vec::new()),
        },
        _ => Op::Pass(u64::from(a) * u64::from(b)),
    }
}

fn from_owner(a: u8, b: u8) -> FromOwner {
    let job = Job {
        until: if a & 8 == 0 { u32::MAX } else { u32::from(b) % 7 },
        ..job(u128::from(b % 3), u32::from(b >> 2) % 26)
    };
    match a % 8 {
        0..=2 => FromOwner::Reserve(job),
        3..=5 => FromOwner::Prefill(job),
        6 if a & 8 == 0 => FromOwner::Release,
        6 => FromOwner::Allow { until: u32::from(b) },
        _ => FromOwner::Pull {
            sampled: u32::from(b) % 2 + 1,
        },
    }
}

fn engine(a: u8, b: u8) -> EngineInput {
    match a % 8 {
        0..=2 => EngineInput::Computed {
            positions: 1 + u32::from(b) % 25,
        },
        3..=5 => EngineInput::Sampled {
            count: 1 + u32::from(b) % 2,
            finish: finish(b > 200),
        },
        6 => EngineInput::NeedBlocks { n: u32::from(b) % 4 },
        _ => EngineInput::Stopped,
    }
}

fn transfer(a: u8) -> TransferInput {
    match a % 4 {
        0 => TransferInput::Offered,
        1 => TransferInput::Withdrawn,
        ok => TransferInput::ReadEnded { ok: ok == 2 },
    }
}
