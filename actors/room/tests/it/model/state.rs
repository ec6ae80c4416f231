//! What a state of the cluster is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use room::{
    Attempt, BlockHash, BlockId, Generation, Hold, Host, HostLimits, HostSpec, Kept, Limits, NodeId, Order,
    Outcome, Priority, Report, Room, RoomId, RoomSpec, Span, Time,
};

use super::laws::Law;
use super::part::Part;
use super::setup::Setup;
use crate::room_kit::GATEWAY;

/// All spans are so many of it: the clock stands still in between.
pub(super) const UNIT: Span = Span::from_millis(1_000);
pub(super) const BLOCK_TOKENS: u32 = 2;
/// Fills one block; the answer needs another.
pub(super) const PROMPT: u32 = 2;

/// `n` units.
pub(super) const fn units(n: u64) -> Span {
    Span::from_millis(n * UNIT.as_millis())
}

#[derive(Clone, Hash, PartialEq, Eq, Debug)]
pub(super) struct State {
    pub(super) now: Time,
    pub(super) guests: Vec<Guest>,
    pub(super) workers: Vec<Worker>,
    pub(super) left: Budget,
    /// A law that the last step broke.
    pub(super) broken: Option<Law>,
}

/// How many faults may still be done to the cluster.
#[derive(Copy, Clone, Hash, PartialEq, Eq, Debug)]
pub(super) struct Budget {
    /// A message lost, repeated, or overtaken.
    pub(super) network: u8,
    /// A process that ends.
    pub(super) crashes: u8,
    /// A link that ends.
    pub(super) cuts: u8,
    pub(super) aborts: u8,
    /// A unit of time that passes while something waits to be done.
    pub(super) slow: u8,
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            ("network", self.network),
            ("crashes", self.crashes),
            ("cuts", self.cuts),
            ("aborts", self.aborts),
            ("slow", self.slow),
        ];
        let some = all.iter().filter(|(_, times)| *times > 0);
        let some: Vec<String> = some.map(|(what, times)| format!("{what} {times}")).collect();
        f.write_str(if some.is_empty() { "none" } else { "" })?;
        f.write_str(&some.join(", "))
    }
}

/// A room, and what its client and its desk have seen of it.
#[derive(Clone, Hash, PartialEq, Eq, Debug)]
pub(super) struct Guest {
    pub(super) room: Part<Room>,
    /// The attempt that waits for credit.
    pub(super) seeks: Option<Generation>,
    pub(super) answer: Option<Outcome>,
    pub(super) ended: bool,
    /// Tokens that the client has taken.
    pub(super) read: u32,
}

#[derive(Clone, Hash, PartialEq, Eq, Debug)]
pub(super) struct Worker {
    /// Of this incarnation.
    pub(super) node: NodeId,
    pub(super) host: Part<Host>,
    pub(super) link: Link,
    pub(super) to_host: Vec<ToHost>,
    pub(super) to_owner: Vec<ToGateway>,
    /// Who is at work on blocks here, in truth: of what the ledger says nothing is believed.
    pub(super) at_work: BTreeMap<(Attempt, Hold), AtWork>,
    /// What is in each block, in truth.
    pub(super) content: Vec<Option<Content>>,
    /// The newest generation of each room that was ever here.
    pub(super) newest: BTreeMap<RoomId, Generation>,
}

#[derive(Copy, Clone, Hash, PartialEq, Eq, Debug)]
pub(super) enum Link {
    Up,
    /// It ended; each end finds out for itself.
    Down {
        owner_knows: bool,
        host_knows: bool,
        /// The process ended with it.
        dead: bool,
    },
}

#[derive(Clone, Hash, PartialEq, Eq, Debug)]
pub(super) enum ToHost {
    Order(Attempt, Order),
    /// Of what is to be kept; and of every leg there was, for when the answer comes.
    Digest {
        open: Vec<Kept>,
        asked: Vec<Attempt>,
    },
}

#[derive(Clone, Hash, PartialEq, Eq, Debug)]
pub(super) enum ToGateway {
    Report(NodeId, Attempt, Report),
    Held(NodeId, BTreeSet<Attempt>, Vec<Attempt>),
}

/// What a block holds.
#[derive(Copy, Clone, Hash, PartialEq, Eq, Debug)]
pub(super) enum Content {
    /// The KV of a sequence at this place.
    Own(Attempt, u32),
    /// That of every sequence that begins with a certain text.
    Named(BlockHash),
}

/// Somebody who touches blocks.
#[derive(Clone, Hash, PartialEq, Eq, Debug)]
pub(super) struct AtWork {
    pub(super) blocks: Vec<BlockId>,
    /// So many leading blocks are not written (any more).
    pub(super) done: u32,
    pub(super) task: Task,
}

#[derive(Copy, Clone, Hash, PartialEq, Eq, Debug)]
pub(super) enum Task {
    Engine {
        /// Tokens in the sequence; of those, with KV.
        tokens: u32,
        computed: u32,
        first_only: bool,
        stopping: bool,
        waits: bool,
        /// Of the answer, tokens that it may sample.
        until: u32,
    },
    /// `from`: which of the offered blocks is the first.
    Read {
        from: u32,
        stage: Stage,
        cancelled: bool,
    },
    Offer {
        offered: bool,
        withdrawing: bool,
    },
}

/// Where the bytes of a read are.
#[derive(Copy, Clone, Hash, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    AtSource,
    UnderWay,
    Landed,
}

impl State {
    pub(super) fn new(setup: &Setup) -> Self {
        let guest = |seq| Guest {
            room: Part::new(Room::new(
                room_id(seq),
                spec(setup),
                &limits(setup),
                Time::default(),
            )),
            seeks: None,
            answer: None,
            ended: false,
            read: 0,
        };
        let worker = |(at, _): (usize, &super::setup::Kind)| {
            let node = NodeId(100 * (1 + at as u64));
            Worker::new(node, setup, at)
        };
        let mut state = Self {
            now: Time::default(),
            guests: (0..setup.rooms).map(guest).collect(),
            workers: setup.workers.iter().enumerate().map(worker).collect(),
            left: setup.budget,
            broken: None,
        };
        for guest in 0..state.guests.len() {
            state.tell_room(setup, guest, None);
        }
        state
    }

    /// Where a report of this node comes from, and orders to it go.
    pub(super) fn worker_of(&self, node: NodeId) -> Option<usize> {
        self.workers.iter().position(|worker| worker.node == node)
    }
}

impl Worker {
    pub(super) fn new(node: NodeId, setup: &Setup, at: usize) -> Self {
        let spec = HostSpec {
            block_tokens: BLOCK_TOKENS,
            blocks: setup.blocks,
            slots: 2,
            mixed: setup.workers[at].is_mixed(),
            limits: host_limits(),
        };
        Self {
            node,
            host: Part::new(Host::new(spec)),
            link: Link::Up,
            to_host: Vec::new(),
            to_owner: Vec::new(),
            at_work: BTreeMap::new(),
            content: vec![None; setup.blocks as usize],
            newest: BTreeMap::new(),
        }
    }
}

fn room_id(seq: u64) -> RoomId {
    RoomId {
        gateway: GATEWAY,
        seq,
    }
}

fn spec(setup: &Setup) -> RoomSpec {
    RoomSpec {
        positions: PROMPT,
        max_new: setup.answer,
        deadline: Time::default() + units(3),
        priority: Priority(0),
        share: room::Share::default(),
    }
}

/// Whole units, and as few different moments as there can be: what is due at one moment happens in every order.
fn limits(setup: &Setup) -> Limits {
    Limits {
        queue: units(2),
        reserve: units(1),
        prefill_stall: units(1),
        pull: units(2),
        token_stall: units(2),
        unread_tokens: setup.unread.unwrap_or(u32::MAX),
        max_faults: 2,
        requeue_first: units(1),
        requeue_max: units(1),
        close_first: units(1),
        close_max: units(1),
        drain_overdue: units(3),
        drain_fence: units(3),
        drain_max: units(3),
    }
}

fn host_limits() -> HostLimits {
    HostLimits {
        prefill_no_progress: units(2),
        published: units(3),
        pull: units(3),
        stall: units(3),
        proof_retry: units(1),
        grace: units(1),
        tombstones: 8,
        transitions: 8,
    }
}
