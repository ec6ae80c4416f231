//! A whole cluster on paper: a desk, rooms, hosts, and between them links with latency and losses. Engines and transfers
//! are a few lines that take their time. One queue of events, one clock: the same faults give the same run.

mod faults;
mod links;
mod owner;
mod worker;

use std::collections::{BTreeMap, BTreeSet};

use room::{
    Attempt, Desk, DeskLimits, Generation, Host, HostInput, Limits, NodeId, Outcome, PhaseKind, Report, Role,
    Room, RoomId, RoomSpec, Span, Time, Work,
};

use crate::room_kit::{GATEWAY, ms};

const LATENCY: Span = Span::from_millis(1);
const HEARTBEAT: Span = Span::from_millis(250);
const LEASE: Span = Span::from_millis(2_000);
/// How much later a message comes that comes once more.
const LATE: Span = Span::from_millis(40);
pub(crate) const BLOCK_TOKENS: u32 = 4;
pub(crate) const BLOCKS: u32 = 24;

/// What is wrong with the links.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Losses {
    /// Every `Close` and `Release` is lost.
    pub(crate) closes: bool,
    /// Every `Allow` is lost.
    pub(crate) allows: bool,
    /// Every so many-th message is lost, either way.
    pub(crate) every: Option<u64>,
    /// Every so many-th message comes once more, and late.
    pub(crate) again: Option<u64>,
}

/// Something done to the world.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Fault {
    /// A client leaves.
    Abort(usize),
    /// A worker dies; another incarnation of it comes up after the lease.
    Kill(usize),
    /// A worker is cut off for longer than the lease, and comes back.
    Cut(usize),
}

enum Event {
    Fault(Fault),
    ToHost(NodeId, u64, HostInput),
    ToRoom(NodeId, u64, Attempt, Report),
    DigestAnswer(NodeId, u64, Vec<Attempt>, Vec<Attempt>),
    Engine(NodeId, Attempt),
    Local(NodeId, HostInput),
    Heartbeat,
    Reads(usize),
    LeaseEnds(NodeId, u64),
    LinkUp(NodeId, Role, bool),
}

struct Worker {
    role: Role,
    host: Host,
    /// Which link; a message of an earlier one is lost.
    link: u64,
    up: bool,
    engine: BTreeMap<Attempt, Sequence>,
    offers: BTreeSet<Attempt>,
    reads: BTreeSet<Attempt>,
}

/// A sequence in the engine.
struct Sequence {
    /// Place in the answer of the next token.
    next: u32,
    positions: u32,
    blocks: usize,
    computed: bool,
    first_only: bool,
    stopping: bool,
    waits: bool,
    /// Place in the answer of the first token that it may not sample.
    until: u32,
    paused: bool,
}

pub(crate) struct Guest {
    pub(crate) room: Room,
    pub(crate) answers: Vec<(Time, Outcome)>,
    pub(crate) length: u32,
    pub(crate) ended: bool,
    /// Tokens that its client has taken, and the most that there ever were beyond.
    read: u32,
    pub(crate) most_unread: u32,
}

/// A client that takes so many tokens at a time, with such pauses.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Reader {
    /// Of its answer, so many may be computed and not taken.
    pub(crate) unread: u32,
    pub(crate) tokens: u32,
    pub(crate) pause: Span,
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) guests: Vec<Guest>,
    desk: Desk,
    workers: BTreeMap<NodeId, Worker>,
    events: BTreeMap<(Time, u64), Event>,
    losses: Losses,
    /// How clients read; none: at once.
    reader: Option<Reader>,
    counter: u64,
    sent: u64,
    works: BTreeMap<Attempt, Work>,
    heartbeats: u64,
}

impl World {
    pub(crate) fn new(roles: &[Role], losses: Losses) -> Self {
        let mut world = Self {
            now: ms(0),
            guests: Vec::new(),
            desk: Desk::new(
                DeskLimits {
                    promised_answer_tokens: 4,
                    ..DeskLimits::default()
                },
                ms(0),
            ),
            workers: BTreeMap::new(),
            events: BTreeMap::new(),
            losses,
            reader: None,
            counter: 0,
            sent: 0,
            works: BTreeMap::new(),
            heartbeats: 0,
        };
        for (index, role) in roles.iter().enumerate() {
            let node = NodeId(100 * (1 + u64::try_from(index).unwrap()));
            world.link_up(node, *role, true);
        }
        world.after(HEARTBEAT, Event::Heartbeat);
        world
    }

    /// Clients that arrive from now on read so.
    pub(crate) fn slow_readers(&mut self, reader: Reader) {
        self.reader = Some(reader);
    }

    /// A request of one room: a prompt, and an answer of `length` tokens of at most `max_new`.
    pub(crate) fn arrive(&mut self, positions: u32, max_new: u32, length: u32, deadline: Time) {
        let id = RoomId {
            gateway: GATEWAY,
            seq: u64::try_from(self.guests.len()).unwrap(),
        };
        let spec = RoomSpec {
            positions,
            max_new,
            deadline,
            priority: room::Priority::default(),
            share: room::Share::default(),
        };
        let mut limits = Limits::default();
        if let Some(reader) = self.reader {
            limits.unread_tokens = reader.unread;
            self.after(reader.pause, Event::Reads(self.guests.len()));
        }
        let room = Room::new(id, spec, &limits, self.now);
        self.guests.push(Guest {
            room,
            answers: Vec::new(),
            length: length.min(max_new),
            ended: false,
            read: 0,
            most_unread: 0,
        });
        self.perform(self.guests.len() - 1);
    }

    pub(crate) fn plan(&mut self, at: Time, fault: Fault) {
        self.at(at, Event::Fault(fault));
    }

    /// Runs until `until`, or until nothing is left to happen but heartbeats.
    pub(crate) fn run(&mut self, until: Time) {
        while let Some(at) = self.next_time().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            while let Some(entry) = self
                .events
                .first_entry()
                .filter(|entry| entry.key().0 <= self.now)
            {
                let event = entry.remove();
                self.happen(event);
            }
            self.timeouts();
        }
        self.now = until;
    }

    /// Nothing is out anywhere (INV-08, INV-11).
    pub(crate) fn assert_quiet(&self) {
        for (node, worker) in &self.workers {
            let occupancy = worker.host.occupancy();
            assert!(
                occupancy.adds_up() && occupancy.is_quiescent(),
                "{node}: {occupancy:?}"
            );
            assert_eq!(worker.host.stays().count(), 0, "{node}");
        }
        for worker in self.desk.workers() {
            assert_eq!(
                (worker.attempts, worker.promised_blocks, worker.prefills),
                (0, 0, 0),
                "{worker:?}"
            );
        }
        assert_eq!(self.desk.waiting(), 0);
    }

    fn next_time(&self) -> Option<Time> {
        let event = self.events.keys().next().map(|(at, _)| *at);
        let rooms = self.guests.iter().filter_map(|guest| guest.room.poll_timeout());
        let hosts = self
            .workers
            .values()
            .filter_map(|worker| worker.host.poll_timeout());
        event
            .into_iter()
            .chain(rooms)
            .chain(hosts)
            .chain(self.desk.poll_timeout())
            .min()
    }

    fn at(&mut self, at: Time, event: Event) {
        self.counter += 1;
        self.events.insert((at, self.counter), event);
    }

    fn after(&mut self, span: Span, event: Event) {
        self.at(self.now + span, event);
    }

    fn timeouts(&mut self) {
        for index in 0..self.guests.len() {
            self.guests[index].room.handle_timeout(self.now);
            self.perform(index);
        }
        let nodes: Vec<_> = self.workers.keys().copied().collect();
        for node in nodes {
            if let Some(worker) = self.workers.get_mut(&node) {
                worker.host.handle_timeout(self.now);
                self.perform_host(node);
            }
        }
        self.desk_decides();
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Fault(fault) => self.fault(fault),
            Event::ToHost(node, link, input) => {
                if self.linked(node, link) {
                    self.host_input(node, input);
                }
            }
            Event::ToRoom(worker, link, attempt, report) => {
                if self.linked(worker, link) {
                    self.room_report(worker, attempt, report);
                }
            }
            Event::DigestAnswer(worker, link, asked, held) => {
                if self.linked(worker, link) {
                    for attempt in asked {
                        let named = held.contains(&attempt);
                        self.room_report(
                            worker,
                            attempt,
                            if named { Report::Held } else { Report::NotHeld },
                        );
                    }
                }
            }
            Event::Engine(node, attempt) => self.engine_step(node, attempt),
            Event::Local(node, input) => self.local(node, input),
            Event::Heartbeat => self.heartbeat(),
            Event::Reads(index) => self.reads(index),
            Event::LeaseEnds(node, link) => self.lease_ends(node, link),
            Event::LinkUp(node, role, fresh) => self.link_up(node, role, fresh),
        }
    }
}

/// What must be true of every guest, whatever was done to the world.
pub(crate) fn check_out(guest: &Guest) {
    let id = guest.room.id();
    assert!(
        guest.ended && guest.room.phase() == PhaseKind::Ended,
        "{id} is {}",
        guest.room.phase()
    );
    assert_eq!(guest.answers.len(), 1, "{id}");
    let (at, outcome) = guest.answers[0];
    assert!(at <= guest.room.spec().deadline, "{id}: answered late");
    if let Outcome::Completed(_) = outcome {
        assert_eq!(guest.room.delivered(), guest.length, "{id}: {outcome:?}");
    }
    assert!(guest.room.generation() >= Generation::FIRST);
}
