//! What a worker's stays add up to: all that a worker says of itself begins with `innkeeper_worker_`, so that nobody adds it to what a gateway
//! says of its workers.

use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Unit;
use room::{Refusal, Span, StayCause, StayPhase, StayTransition};

use super::families::{
    Carried, Counts, Shelf, Spread, Transport, Worker, WorkerHolds, WorkerReason, plain_short, seconds,
};
use super::names::Names;
use crate::event::{StayEvent, StayWhat, Text};
use crate::facts::StayFacts;
use crate::labels;

/// All of it.
#[derive(Debug)]
pub(super) struct Stays {
    opened: Counts<Worker>,
    refused: Counts<WorkerReason>,
    closed: Counts<WorkerReason>,
    quarantines: Counts<WorkerHolds>,
    prompt_tokens: Counts<Worker>,
    cached_tokens: Counts<Worker>,
    sampled: Counts<Worker>,
    between_tokens: Histogram,
    failures: Counts<WorkerReason>,
    reads: Reads,
}

#[derive(Debug)]
struct Reads {
    bytes: Counts<Carried>,
    descriptors: Counts<Carried>,
    done: Counts<Carried>,
    failed: Counts<Worker>,
    lasted: Spread<Transport>,
    blocks: Counts<Worker>,
    found_blocks: Counts<Worker>,
}

impl Stays {
    pub(super) fn new(shelf: &mut Shelf<'_>) -> Self {
        Self {
            opened: shelf.count("worker_stays_opened", "Attempts that came to stay"),
            refused: shelf.count("worker_refusals", "What owners asked for and did not get, by reason"),
            closed: shelf.count(
                "worker_stays_closed",
                "Stays that were closed, by cause: not_in_digest is a Close that was lost and made good for",
            ),
            quarantines: shelf.count(
                "worker_quarantines",
                "Stays that were closed while somebody might still touch their blocks, by who",
            ),
            prompt_tokens: shelf.count("worker_prompt_tokens", "Positions that the engine was given to compute or to find"),
            cached_tokens: shelf.count("worker_prompt_cached_tokens", "Of those, positions whose KV was there already"),
            sampled: shelf.count("worker_sampled_tokens", "Tokens sampled"),
            between_tokens: shelf.put_in(
                Unit::Seconds,
                "worker_inter_token",
                "Between a token that was sampled and the one before, of a stay",
                plain_short(),
            ),
            failures: shelf.count(
                "worker_sequence_failures",
                "Sequences that failed: in the engine, because it took no command, or because their KV could not be offered",
            ),
            reads: Reads::new(shelf),
        }
    }

    /// Something happened to a stay.
    pub(super) fn told(
        &self,
        event: &StayEvent,
        facts: Option<&StayFacts>,
        gap: Option<Span>,
        names: &Names,
    ) {
        let worker = match facts {
            Some(facts) => names.meet(facts.worker, &facts.name),
            None => names.of(event.worker),
        };
        let reads = &self.reads;
        match &event.what {
            StayWhat::Opened(_) => {
                self.opened.get_or_create(&Worker { worker }).inc();
            }
            StayWhat::Refused(why) => {
                let reason = labels::refusal(*why);
                self.refused.get_or_create(&WorkerReason { worker, reason }).inc();
            }
            StayWhat::Step(step) => self.stepped(step, worker),
            StayWhat::PromptStarted { cached } => {
                let labels = Worker { worker };
                let positions = facts.map_or(0, |facts| facts.positions);
                self.prompt_tokens.get_or_create(&labels).inc_by(positions.into());
                self.cached_tokens.get_or_create(&labels).inc_by((*cached).into());
            }
            StayWhat::Sampled { count } => {
                self.sampled
                    .get_or_create(&Worker { worker })
                    .inc_by((*count).into());
                if let Some(gap) = gap {
                    self.between_tokens.observe(seconds(gap));
                }
            }
            StayWhat::EngineFailed { .. } => self.failed(worker, "engine"),
            StayWhat::NotCommanded { .. } => self.failed(worker, "not_commanded"),
            StayWhat::NotOffered { .. } => self.failed(worker, "not_offered"),
            StayWhat::ReadStarted {
                blocks,
                cached_blocks,
            } => {
                let labels = Worker { worker };
                reads.blocks.get_or_create(&labels).inc_by((*blocks).into());
                reads
                    .found_blocks
                    .get_or_create(&labels)
                    .inc_by((*cached_blocks).into());
            }
            StayWhat::ReadDone {
                bytes,
                descriptors,
                transport,
                lasted,
            } => {
                let transport = names.transport(transport);
                reads.done((worker, transport), (*bytes, *descriptors), *lasted);
            }
            StayWhat::ReadFailed { .. } => {
                reads.failed.get_or_create(&Worker { worker }).inc();
            }
            StayWhat::Computed { .. }
            | StayWhat::WantsBlocks { .. }
            | StayWhat::Offered { .. }
            | StayWhat::Withdrawn => {}
        }
    }

    /// A worker is started: series that are there from the start show their first increase.
    pub(super) fn begins(&self, worker: &Text) {
        let of_reason = |reason| WorkerReason {
            worker: Text::clone(worker),
            reason,
        };
        for reason in ["engine", "not_commanded", "not_offered"] {
            let _ = self.failures.get_or_create(&of_reason(reason));
        }
        for why in [
            Refusal::NoBlocks,
            Refusal::NoSlot,
            Refusal::TooLarge,
            Refusal::Stale,
        ] {
            let _ = self.refused.get_or_create(&of_reason(labels::refusal(why)));
        }
        for why in [StayCause::ClosedByOwner, StayCause::NotInDigest] {
            let _ = self.closed.get_or_create(&of_reason(labels::stay_cause(why)));
        }
        for holds in ["engine", "read", "offer"] {
            let worker = Text::clone(worker);
            let _ = self.quarantines.get_or_create(&WorkerHolds { worker, holds });
        }
        let worker = Text::clone(worker);
        let _ = self.reads.failed.get_or_create(&Worker { worker });
    }

    fn failed(&self, worker: Text, reason: &'static str) {
        self.failures
            .get_or_create(&WorkerReason { worker, reason })
            .inc();
    }

    fn stepped(&self, step: &StayTransition, worker: Text) {
        // Steps from closing to closing are proofs that are late: the host counts those.
        if step.to != Some(StayPhase::Closing) || step.from == step.to {
            return;
        }
        let reason = labels::stay_cause(step.why);
        let labels = WorkerReason {
            worker: worker.clone(),
            reason,
        };
        self.closed.get_or_create(&labels).inc();
        if !step.holds.is_empty() {
            let holds = labels::holds(step.holds);
            self.quarantines
                .get_or_create(&WorkerHolds { worker, holds })
                .inc();
        }
    }
}

impl Reads {
    fn new(shelf: &mut Shelf<'_>) -> Self {
        Self {
            bytes: shelf.put_in(
                Unit::Bytes,
                "worker_kv_read",
                "KV read from other workers",
                Counts::default(),
            ),
            descriptors: shelf.count("worker_kv_read_descriptors", "Contiguous pieces it came in"),
            done: shelf.count("worker_kv_reads", "Reads that brought everything"),
            failed: shelf.count(
                "worker_kv_reads_failed",
                "Reads that ended without, or could not begin",
            ),
            lasted: shelf.put_in(
                Unit::Seconds,
                "worker_kv_read_time",
                "How long a read took that brought everything",
                Spread::new_with_constructor(plain_short),
            ),
            blocks: shelf.count("worker_kv_read_blocks", "Blocks that reads began with"),
            found_blocks: shelf.count(
                "worker_kv_read_found_blocks",
                "Blocks before them that were there already",
            ),
        }
    }

    fn done(&self, (worker, transport): (Text, Text), (bytes, descriptors): (u64, u32), lasted: Span) {
        let of = Transport {
            transport: transport.clone(),
        };
        let labels = Carried { worker, transport };
        self.bytes.get_or_create(&labels).inc_by(bytes);
        self.descriptors.get_or_create(&labels).inc_by(descriptors.into());
        self.done.get_or_create(&labels).inc();
        self.lasted.get_or_create(&of).observe(seconds(lasted));
    }
}
