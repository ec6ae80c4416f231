//! What happens to links, workers and engines, added up.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Unit;
use room::{HostCounters, NodeId, Span};

use super::families::{
    Counts, Levels, Reason, Shelf, Spread, Worker, WorkerEnd as EndLabels, WorkerReason, plain_short, powers,
    seconds,
};
use super::names::Names;
use super::rooms::Rooms;
use super::stays::Stays;
use crate::event::{LinkEnd, NodeEvent, NodeWhat, RefusedBecause, Text, WorkerEnd};
use crate::labels;

/// All of it.
#[derive(Debug)]
pub(super) struct Nodes {
    refused: Counts<Reason>,
    mail_dropped: Counter,
    links: Counts<Worker>,
    links_ended: Counts<EndLabels>,
    not_fitting: Counter,
    cut_off: Counts<Worker>,
    gateways: Levels<Worker>,
    gateways_ended: Counts<EndLabels>,
    frames_not_sent: Counter,
    batch: Spread<Worker>,
    step_tokens: Spread<Worker>,
    step: Spread<Worker>,
    started: Counts<Worker>,
    ended: Counts<WorkerReason>,
    faults: Counts<WorkerReason>,
    host: Hosts,
}

/// What hosts count. Levels of an incarnation, made increases of a worker.
#[derive(Debug)]
struct Hosts {
    /// What each incarnation last said; of the latest so many.
    last: RwLock<BTreeMap<NodeId, HostCounters>>,
    no_effect: Counts<WorkerReason>,
    healed: Counts<Worker>,
    evictions: Counts<Worker>,
    expired: Counts<Worker>,
    proofs_overdue: Counts<Worker>,
    transitions_lost: Counts<Worker>,
}

/// Incarnations whose counts are remembered: more than a node ever has at a time.
const INCARNATIONS: usize = 256;

impl Nodes {
    pub(super) fn new(shelf: &mut Shelf<'_>) -> Self {
        let refused: Counts<Reason> = shelf.count("requests_refused", "Requests that got no room, by reason");
        for why in [
            RefusedBecause::TooManyRequests,
            RefusedBecause::ShuttingDown,
            RefusedBecause::NotStarted,
            RefusedBecause::Unavailable,
        ] {
            let reason = labels::refused_because(why);
            let _ = refused.get_or_create(&Reason { reason });
        }
        Self {
            refused,
            mail_dropped: shelf.count(
                "mail_dropped",
                "News of rooms that their owners did not read in time",
            ),
            links: shelf.count("links", "Links with a worker that came up"),
            links_ended: shelf.count(
                "links_ended",
                "Links with a worker that are over, by how they ended",
            ),
            not_fitting: shelf.count("workers_refused", "Workers that came and do not fit the others"),
            cut_off: shelf.count(
                "workers_cut_off",
                "Times that this gateway ended a worker's link by force",
            ),
            gateways: shelf.count("worker_gateways", "Gateways that a worker is linked with"),
            gateways_ended: shelf.count(
                "worker_links_ended",
                "Links of a worker with a gateway that are over, by how they ended",
            ),
            frames_not_sent: shelf.count(
                "worker_frames_not_sent",
                "Frames for gateways that could not be sent",
            ),
            batch: shelf.put(
                "worker_batch_sequences",
                "Sequences in a step of the engine",
                Spread::new_with_constructor(powers),
            ),
            step_tokens: shelf.put(
                "worker_step_tokens",
                "Tokens computed in a step of the engine",
                Spread::new_with_constructor(powers),
            ),
            step: shelf.put_in(
                Unit::Seconds,
                "worker_step",
                "How long a step of the engine took",
                Spread::new_with_constructor(plain_short),
            ),
            started: shelf.count("worker_starts", "Incarnations of a worker that were started"),
            ended: shelf.count(
                "worker_ends",
                "Incarnations of a worker that ended or could not be built, by what comes of it",
            ),
            faults: shelf.count(
                "worker_faults",
                "Engines and transfers that went down, and steps that hang",
            ),
            host: Hosts::new(shelf),
        }
    }

    /// Something happened to the node.
    pub(super) fn told(&self, event: &NodeEvent, names: &Names, (rooms, stays): (&Rooms, &Stays)) {
        match &event.what {
            NodeWhat::RequestRefused { why, .. } => {
                let reason = labels::refused_because(*why);
                self.refused.get_or_create(&Reason { reason }).inc();
            }
            NodeWhat::WorkerLinked { worker, name, .. } => {
                self.worker_linked(names.meet(*worker, name), rooms);
            }
            NodeWhat::WorkerRefused { .. } => {
                self.not_fitting.inc();
            }
            NodeWhat::Fencing { worker, .. } => {
                let worker = names.of(*worker);
                self.cut_off.get_or_create(&Worker { worker }).inc();
            }
            NodeWhat::WorkerUnlinked {
                worker, name, end, ..
            } => {
                let worker = names.meet(*worker, name);
                self.links_ended.get_or_create(&ended(&worker, *end)).inc();
            }
            NodeWhat::MailDropped { .. } => {
                self.mail_dropped.inc();
            }
            NodeWhat::GatewayLinked { name, gateways, .. } => self.linked(names.worker(name), *gateways),
            NodeWhat::GatewayUnlinked {
                name, gateways, end, ..
            } => {
                let worker = names.worker(name);
                self.gateways_ended.get_or_create(&ended(&worker, *end)).inc();
                self.linked(worker, *gateways);
            }
            NodeWhat::Step {
                worker,
                batch,
                tokens,
                lasted,
            } => self.stepped(names.of(*worker), *batch, *tokens, *lasted),
            NodeWhat::Counted {
                worker,
                name,
                counters,
            } => {
                let label = names.meet(*worker, name);
                self.host.counted(*worker, label, *counters);
            }
            NodeWhat::FrameNotSent { .. } => {
                self.frames_not_sent.inc();
            }
            NodeWhat::EngineDown { name, .. } => self.fault(names.worker(name), "engine_down"),
            NodeWhat::EngineHangs { name, .. } => self.fault(names.worker(name), "engine_hangs"),
            NodeWhat::TransferDown { name, .. } => self.fault(names.worker(name), "transfer_down"),
            NodeWhat::WorkerStarted { name, worker } => {
                let worker = names.meet(*worker, name);
                self.begins(&worker);
                stays.begins(&worker);
                self.started.get_or_create(&Worker { worker }).inc();
            }
            NodeWhat::WorkerEnded { name, then, .. } => {
                let (worker, reason) = (names.worker(name), after(*then));
                self.linked(worker.clone(), 0);
                self.ended.get_or_create(&WorkerReason { worker, reason }).inc();
            }
            NodeWhat::WorkerLeaving { .. }
            | NodeWhat::GatewayLeaving { .. }
            | NodeWhat::Draining { .. }
            | NodeWhat::Undrained { .. }
            | NodeWhat::NodeEnds { .. } => {}
        }
    }

    fn worker_linked(&self, worker: Text, rooms: &Rooms) {
        // A series that is there from the start shows its first increase.
        for end in [LinkEnd::InOrder, LinkEnd::Fence, LinkEnd::Loss] {
            let labels = ended(&worker, end);
            let _ = self.links_ended.get_or_create(&labels);
        }
        rooms.begins(&worker);
        self.links.get_or_create(&Worker { worker }).inc();
    }

    fn stepped(&self, worker: Text, batch: u32, tokens: u32, lasted: Span) {
        let labels = Worker { worker };
        self.batch.get_or_create(&labels).observe(batch.into());
        self.step_tokens.get_or_create(&labels).observe(tokens.into());
        self.step.get_or_create(&labels).observe(seconds(lasted));
    }

    /// A worker is started: series that are there from the start show their first increase.
    fn begins(&self, worker: &Text) {
        self.host.begins(worker);
        let of_reason = |reason| WorkerReason {
            worker: Text::clone(worker),
            reason,
        };
        for reason in ["restarts", "changes_role", "given_up", "hangs"] {
            let _ = self.ended.get_or_create(&of_reason(reason));
        }
        for reason in ["engine_down", "engine_hangs", "transfer_down"] {
            let _ = self.faults.get_or_create(&of_reason(reason));
        }
        // A rate needs to have seen the nothing before the first step.
        for family in [&self.batch, &self.step_tokens, &self.step] {
            let worker = Text::clone(worker);
            let _ = family.get_or_create(&Worker { worker });
        }
    }

    fn linked(&self, worker: Text, gateways: u32) {
        self.gateways
            .get_or_create(&Worker { worker })
            .set(gateways.into());
    }

    fn fault(&self, worker: Text, reason: &'static str) {
        self.faults.get_or_create(&WorkerReason { worker, reason }).inc();
    }
}

fn ended(worker: &Text, end: LinkEnd) -> EndLabels {
    EndLabels {
        worker: Text::clone(worker),
        end: labels::link_end(end),
    }
}

fn after(then: WorkerEnd) -> &'static str {
    match then {
        WorkerEnd::Restarts { .. } => "restarts",
        WorkerEnd::ChangesRole { .. } => "changes_role",
        WorkerEnd::GivenUp => "given_up",
        WorkerEnd::Hangs { .. } => "hangs",
    }
}

impl Hosts {
    fn new(shelf: &mut Shelf<'_>) -> Self {
        Self {
            last: RwLock::default(),
            no_effect: shelf.count(
                "worker_messages_without_effect",
                "Messages and reports that changed nothing: stale, unknown, duplicate, out of order, late",
            ),
            healed: shelf.count(
                "worker_digests_healed",
                "Stays dropped because a digest did not list them: each is a Close that was lost",
            ),
            evictions: shelf.count(
                "worker_evictions",
                "Stays that gave up their blocks so that an older one could grow",
            ),
            expired: shelf.count(
                "worker_stays_expired",
                "Stays whose deadline passed at the worker",
            ),
            proofs_overdue: shelf.count(
                "worker_proofs_overdue",
                "Times that a proof was late that nobody touches blocks any more",
            ),
            transitions_lost: shelf.count("worker_transitions_lost", "Steps of stays that were not told"),
        }
    }

    /// Series that are there from the start show their first increase.
    fn begins(&self, worker: &Text) {
        let labels = Worker {
            worker: Text::clone(worker),
        };
        for family in [
            &self.healed,
            &self.evictions,
            &self.expired,
            &self.proofs_overdue,
            &self.transitions_lost,
        ] {
            let _ = family.get_or_create(&labels);
        }
        for reason in ["stale", "unknown", "duplicate", "out_of_order", "late_report"] {
            let worker = Text::clone(worker);
            let _ = self.no_effect.get_or_create(&WorkerReason { worker, reason });
        }
    }

    fn counted(&self, node: NodeId, worker: Text, now: HostCounters) {
        let before = {
            let mut last = self.last.write().unwrap_or_else(PoisonError::into_inner);
            let before = last.insert(node, now).unwrap_or_default();
            while last.len() > INCARNATIONS {
                last.pop_first();
            }
            before
        };
        let more = |of: fn(&HostCounters) -> u64| of(&now).saturating_sub(of(&before));
        let without_effect = [
            ("stale", more(|c| c.stale)),
            ("unknown", more(|c| c.unknown)),
            ("duplicate", more(|c| c.duplicates)),
            ("out_of_order", more(|c| c.out_of_order)),
            ("late_report", more(|c| c.late_reports)),
        ];
        for (reason, more) in without_effect.into_iter().filter(|(_, more)| *more > 0) {
            let worker = worker.clone();
            self.no_effect
                .get_or_create(&WorkerReason { worker, reason })
                .inc_by(more);
        }
        let labels = Worker { worker };
        for (family, more) in [
            (&self.healed, more(|c| c.healed_by_digest)),
            (&self.evictions, more(|c| c.evictions)),
            (&self.expired, more(|c| c.expired)),
            (&self.proofs_overdue, more(|c| c.proofs_overdue)),
            (&self.transitions_lost, more(|c| c.transitions_lost)),
        ] {
            if more > 0 {
                family.get_or_create(&labels).inc_by(more);
            }
        }
    }
}
