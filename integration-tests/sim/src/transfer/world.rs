//! The state of the whole data path, and the order in which things happen to it. No I/O and no clock: it is told the time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kv::{EventSink, KvEvent};
use tokio::time::Instant;

use super::{
    config::Config,
    faults::{Death, Fault, Faults},
    flow::{Answer, Flow, FlowId},
    members::{Member, MemberId, Place},
    queue::{End, Event, Queue, What},
};

/// Violations that are kept; more would say nothing new.
const MAX_VIOLATIONS: usize = 64;

/// One endpoint: who dialled whom, and what either side last saw on it.
#[derive(Copy, Clone)]
pub(super) struct Path {
    /// When its blocks so far have landed.
    pub(super) free_at: Instant,
    pub(super) reader_progress: Instant,
    pub(super) source_progress: Instant,
}

/// Everything.
pub(super) struct World {
    pub(super) config: Config,
    pub(super) seed: u64,
    pub(super) now: Instant,
    pub(super) members: BTreeMap<MemberId, Member>,
    pub(super) incarnations: BTreeMap<Place, u32>,
    pub(super) deaths: BTreeMap<MemberId, Death>,
    pub(super) flows: BTreeMap<FlowId, Flow>,
    pub(super) last_flow: u64,
    /// By source and reader.
    pub(super) paths: BTreeMap<(MemberId, MemberId), Path>,
    pub(super) queue: Queue,
    /// Directions in which nothing passes.
    pub(super) cuts: BTreeSet<(Place, Place)>,
    pub(super) faults: BTreeMap<Place, Faults>,
    pub(super) default_faults: Faults,
    /// Faults on command, by the number of the read at its place.
    pub(super) scripts: BTreeMap<Place, BTreeMap<u64, Fault>>,
    pub(super) reads_seen: BTreeMap<Place, u64>,
    pub(super) counts: BTreeMap<&'static str, u64>,
    pub(super) violations: Vec<String>,
    /// To be handed out when nothing is borrowed.
    out: VecDeque<(EventSink, KvEvent)>,
    started: Instant,
    fingerprint: u64,
    pub(super) scratch: Vec<u8>,
}

impl World {
    pub(super) fn new(config: Config, seed: u64, now: Instant) -> Self {
        Self {
            config,
            seed,
            now,
            members: BTreeMap::new(),
            incarnations: BTreeMap::new(),
            deaths: BTreeMap::new(),
            flows: BTreeMap::new(),
            last_flow: 0,
            paths: BTreeMap::new(),
            queue: Queue::default(),
            cuts: BTreeSet::new(),
            faults: BTreeMap::new(),
            default_faults: Faults::NONE,
            scripts: BTreeMap::new(),
            reads_seen: BTreeMap::new(),
            counts: BTreeMap::new(),
            violations: Vec::new(),
            out: VecDeque::new(),
            started: now,
            fingerprint: 0xcbf2_9ce4_8422_2325,
            scratch: Vec::new(),
        }
    }

    /// Lets everything happen that is due by `now`, each at its own time.
    pub(super) fn run_until(&mut self, now: Instant) {
        while let Some((at, event)) = self.queue.pop(now) {
            self.now = at;
            self.dispatch(event);
        }
        self.now = now;
    }

    /// Events to hand out, in order.
    pub(super) fn take_out(&mut self) -> VecDeque<(EventSink, KvEvent)> {
        std::mem::take(&mut self.out)
    }

    pub(super) fn tell(&mut self, sink: &EventSink, event: KvEvent) {
        self.out.push_back((sink.clone(), event));
    }

    /// A fault has struck.
    pub(super) fn count(&mut self, fault: &'static str) {
        tracing::debug!(fault, "strikes");
        *self.counts.entry(fault).or_default() += 1;
    }

    pub(super) fn violation(&mut self, what: impl FnOnce() -> String) {
        if self.violations.len() < MAX_VIOLATIONS {
            let at = self.now.duration_since(self.started).as_micros();
            self.violations.push(format!("at {at} us: {}", what()));
        }
    }

    /// A hash of all that has happened, and when.
    pub(super) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn note(&mut self, event: Event) {
        let at = self.now.duration_since(self.started).as_micros();
        let words = [
            u64::try_from(at).unwrap_or(u64::MAX),
            event.flow.0,
            event.what.number(),
        ];
        for word in words {
            self.fingerprint = (self.fingerprint ^ word)
                .wrapping_mul(0x0100_0000_01b3)
                .rotate_left(17);
        }
    }

    fn dispatch(&mut self, event: Event) {
        let Some(flow) = self.flows.get(&event.flow) else {
            return;
        };
        let (here, there) = match event.what.end() {
            End::Reader => (flow.reader, flow.source),
            End::Source => (flow.source, flow.reader),
        };
        if event.what.crosses() && self.cuts.contains(&(there.place, here.place)) {
            self.queue.park(event);
            return;
        }
        match self.members.get(&here) {
            Some(member) if member.frozen => self.queue.park(event),
            Some(_) => {
                self.note(event);
                self.happen(event);
            }
            None => {
                self.note(event);
                self.nobody(event);
            }
        }
    }

    /// Forgets a read that both ends are done with.
    pub(super) fn reap(&mut self, id: FlowId) {
        if self.flows.get(&id).is_some_and(Flow::is_over) {
            self.flows.remove(&id);
        }
    }

    /// What may go wrong between two places: what the reader's says, or else the source's.
    pub(super) fn faults_between(&self, reader: MemberId, source: MemberId) -> Faults {
        let own = |member: MemberId| self.faults.get(&member.place).copied();
        own(reader).or_else(|| own(source)).unwrap_or(self.default_faults)
    }

    /// The endpoint between a read's two ends.
    pub(super) fn path(&mut self, source: MemberId, reader: MemberId) -> &mut Path {
        let now = self.now;
        self.paths.entry((source, reader)).or_insert(Path {
            free_at: now,
            reader_progress: now,
            source_progress: now,
        })
    }

    /// The reads of one endpoint.
    pub(super) fn on_path(&self, source: MemberId, reader: MemberId) -> Vec<FlowId> {
        self.flows
            .iter()
            .filter(|(_, flow)| flow.source == source && flow.reader == reader)
            .map(|(&id, _)| id)
            .collect()
    }
}

impl World {
    fn happen(&mut self, event: Event) {
        let id = event.flow;
        match event.what {
            What::Ask => self.on_ask(id),
            What::Header { at } => self.on_header(id, at),
            What::Land { at } => self.on_land(id, at),
            What::Sent { at } => self.on_sent(id, at),
            What::Refuse(why) => self.on_refuse(id, why),
            What::Cancel => self.on_cancel(id),
            What::ReaderGone => self.on_reader_gone(id),
            What::SourceGone(why) => self.on_source_gone(id, why),
            What::Stray { index } => self.on_stray(id, index),
            What::ReadClosed => self.on_read_closed(id),
            What::AnswerClosed => self.on_answer_closed(id),
            What::ReadDeadline => self.on_read_deadline(id),
            What::AnswerDeadline => self.on_answer_deadline(id),
        }
    }

    /// Something comes where nobody lives. A machine that is up refuses a connection; of one that is not, nothing is
    /// ever heard.
    fn nobody(&mut self, event: Event) {
        if event.what != What::Ask {
            return;
        }
        let Some(flow) = self.flows.get_mut(&event.flow) else {
            return;
        };
        if !matches!(flow.answer, Answer::ToCome) {
            return;
        }
        flow.answer = Answer::Over;
        let source = flow.source;
        let is_up = self.deaths.get(&source) != Some(&Death::Silent)
            || self.members.keys().any(|member| member.place == source.place);
        if is_up {
            let at = self.now + self.config.latency;
            self.queue
                .push(at, event.flow, What::SourceGone("connection refused"));
        }
        self.reap(event.flow);
    }
}
