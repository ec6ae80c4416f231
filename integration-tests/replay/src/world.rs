//! The world: virtual time, and everything that takes some of it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Instant;

use room::{Attempt, BlockHash, NodeId, Role, Span, Time};

use crate::gateway::{Gateway, Sent};
use crate::report::{Record, Summary, Tally};
use crate::setup::Setup;
use crate::trace::{BLOCK_TOKENS, Request};
use crate::worker::{Frame, Worker};

/// What one replay leaves.
#[derive(Debug)]
pub struct Replayed {
    /// Of each request, in order of the trace.
    pub records: Vec<Record>,
    /// Of each worker, prefill workers first.
    pub(crate) tallies: Vec<Tally>,
    pub(crate) retries: u64,
    pub(crate) gaps: u64,
    /// When the last one ended.
    pub(crate) ended: Time,
    /// Whether at the end nothing was held or under way anywhere, and nothing happened that cannot be.
    pub at_rest: bool,
}

/// Something that happens at a time.
enum Happening {
    Arrival(usize),
    Alarm(usize),
    Order(Sent),
    Frame(NodeId, Frame),
    StepEnd(usize),
    ReadEnd {
        worker: usize,
        attempt: Attempt,
        blocks: u32,
        lasted_us: u64,
    },
    Beat(usize),
    List(NodeId),
    Listed(NodeId, u64, Vec<BlockHash>),
}

/// Later ones of one time come after.
struct Entry(Time, u64, Happening);

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

struct World<'a> {
    setup: &'a Setup,
    requests: usize,
    gateway: Gateway<'a>,
    workers: Vec<Worker>,
    heap: BinaryHeap<Reverse<Entry>>,
    pushed: u64,
    now: Time,
    /// Until when each worker sends KV, and receives it.
    sends: BTreeMap<NodeId, Time>,
    receives: BTreeMap<NodeId, Time>,
}

/// Replays the requests, which come so many times as fast as they were recorded (they already do: `speed` is for the summary).
#[must_use]
pub fn replay(requests: &[Request], setup: &Setup, speed: f64) -> (Replayed, Summary) {
    let began = Instant::now();
    let mut world = World::new(requests, setup);
    world.run();
    let at_rest = world
        .workers
        .iter()
        .all(|w| w.is_at_rest() && w.tally.broken == 0);
    let run = Replayed {
        at_rest,
        tallies: world.workers.iter().map(|w| w.tally).collect(),
        retries: world.gateway.retries,
        gaps: world.gateway.gaps,
        ended: world.now,
        records: world.gateway.records,
    };
    let summary = Summary::of(setup, speed, &run, began.elapsed().as_secs_f64());
    (run, summary)
}

/// Workers' names come after the gateway's.
fn node(worker: usize) -> NodeId {
    NodeId(worker as u64 + 10)
}

fn worker(node: NodeId) -> usize {
    usize::try_from(node.0.saturating_sub(10)).unwrap_or(usize::MAX)
}

impl<'a> World<'a> {
    fn new(requests: &'a [Request], setup: &'a Setup) -> Self {
        let roles = std::iter::repeat_n(Role::Prefill, setup.prefill.into())
            .chain(std::iter::repeat_n(Role::Decode, setup.decode.into()));
        let mut world = Self {
            setup,
            requests: requests.len(),
            gateway: Gateway::new(setup, requests),
            workers: roles.map(|role| Worker::new(role, setup)).collect(),
            heap: BinaryHeap::new(),
            pushed: 0,
            now: Time::default(),
            sends: BTreeMap::new(),
            receives: BTreeMap::new(),
        };
        for at in 0..world.workers.len() {
            world.gateway.worker_up(node(at), world.workers[at].spec);
            world.push(Time::default(), Happening::Beat(at));
        }
        for (at, request) in requests.iter().enumerate() {
            world.push(
                Time {
                    micros: request.arrival_us,
                },
                Happening::Arrival(at),
            );
        }
        world
    }

    fn push(&mut self, at: Time, what: Happening) {
        self.heap.push(Reverse(Entry(at, self.pushed, what)));
        self.pushed += 1;
    }

    /// A message's time from now.
    fn over_the_link(&self) -> Time {
        self.now
            + Span {
                micros: self.setup.link_us,
            }
    }

    fn run(&mut self) {
        while self.gateway.ended < self.requests {
            let Some(Reverse(Entry(at, _, what))) = self.heap.pop() else {
                return;
            };
            self.now = at;
            self.happen(what);
            self.after_gateway();
        }
    }

    fn happen(&mut self, what: Happening) {
        let now = self.now;
        match what {
            Happening::Arrival(at) => self.gateway.arrive(now, at),
            Happening::Alarm(at) => self.gateway.alarm(now, at),
            Happening::Frame(from, frame) => self.gateway.frame(now, from, frame),
            Happening::Order(sent) => {
                let at = worker(sent.to);
                self.workers[at].order(now, sent.attempt, sent.message, sent.source);
                self.after_worker(at);
            }
            Happening::StepEnd(at) => {
                self.workers[at].end_step(now);
                self.after_worker(at);
            }
            Happening::ReadEnd {
                worker,
                attempt,
                blocks,
                lasted_us,
            } => {
                self.workers[worker].read_ended(now, attempt, blocks, lasted_us);
                self.after_worker(worker);
            }
            Happening::Beat(at) => {
                self.workers[at].beat(now);
                self.after_worker(at);
                let next = now
                    + Span {
                        micros: self.setup.beat_us,
                    };
                self.push(next, Happening::Beat(at));
            }
            Happening::List(node) => {
                let (next, hashes) = self.workers[worker(node)].cache();
                let at = self.over_the_link();
                self.push(at, Happening::Listed(node, next, hashes));
            }
            Happening::Listed(node, next, hashes) => self.gateway.listed(node, next, &hashes),
        }
    }

    /// Sends what the gateway has to send.
    fn after_gateway(&mut self) {
        let at = self.over_the_link();
        for sent in std::mem::take(&mut self.gateway.sent) {
            self.push(at, Happening::Order(sent));
        }
        for node in std::mem::take(&mut self.gateway.to_list) {
            self.push(at, Happening::List(node));
        }
        for (due, room) in std::mem::take(&mut self.gateway.alarms) {
            self.push(due, Happening::Alarm(room));
        }
    }

    /// Begins what a worker can begin, and sends what it has to tell.
    fn after_worker(&mut self, at: usize) {
        if let Some(ends) = self.workers[at].begin_step(self.now) {
            self.push(ends, Happening::StepEnd(at));
        }
        for reading in std::mem::take(&mut self.workers[at].readings) {
            let bytes = u64::from(reading.blocks) * u64::from(BLOCK_TOKENS) * self.setup.model.kv_bytes();
            let ends = self.move_kv(reading.source, node(at), bytes);
            let lasted_us = (ends - self.now).micros;
            self.push(
                ends,
                Happening::ReadEnd {
                    worker: at,
                    attempt: reading.attempt,
                    blocks: reading.blocks,
                    lasted_us,
                },
            );
        }
        let frame = std::mem::take(&mut self.workers[at].frame);
        if !frame.is_empty() {
            let due = self.over_the_link();
            self.push(due, Happening::Frame(node(at), frame));
        }
    }

    /// One after the other at each end.
    fn move_kv(&mut self, from: NodeId, to: NodeId, bytes: u64) -> Time {
        let sends = self.sends.entry(from).or_default();
        let receives = self.receives.entry(to).or_default();
        let begins = self.now.max(*sends).max(*receives);
        let micros = bytes.saturating_mul(1_000_000) / self.setup.kv_bytes_per_s.max(1);
        // Asking for it takes a message each way.
        let ends = begins
            + Span {
                micros: micros + 2 * self.setup.link_us,
            };
        *sends = ends;
        *receives = ends;
        ends
    }
}
