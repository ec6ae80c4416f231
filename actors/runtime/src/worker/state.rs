//! A worker's state, and how what happens around it becomes inputs of its host.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{EngineEvent, EngineHandle, StepReport, TokenEvent};
use kv::{KvEvent, KvTransfer, ReadId};
use mesh::Dialer;
use room::{Attempt, EngineInput, FromOwner, Host, HostCounters, HostInput, NodeId, TransferInput};
use tracing::{debug, error, info, warn};
use wire::{ToWorker, TokenOut, WorkerStats};

use super::content::Contents;
use super::outbox::Outbox;
use super::transfer::LastOf;
use crate::alarm::Alarm;
use crate::clock::Clock;
use crate::convert;

/// Everything the worker's actor owns.
pub(crate) struct State {
    pub(super) name: String,
    pub(super) clock: Clock,
    pub(super) host: Host,
    pub(super) contents: Contents,
    /// Ends with its handle, after the step it is in; nobody waits for that.
    pub(super) engine: EngineHandle,
    /// Since when its step is known to last longer than anybody waits.
    pub(super) step_overdue: Option<room::Time>,
    pub(super) transfer: Arc<dyn KvTransfer>,
    pub(super) reads: BTreeMap<ReadId, Attempt>,
    pub(super) next_read: u64,
    pub(super) outbox: Outbox,
    /// What the host has counted, as last logged.
    pub(super) counted: HostCounters,
    pub(super) alarm: Alarm,
    /// Dropped with the state: the links end, and every gateway fences this worker. None once it has left them in order.
    pub(super) dialer: Option<Dialer>,
    /// Below `transfer`, so that it is dropped after it.
    pub(super) _last: LastOf,
}

impl State {
    /// A frame from a gateway. The gateway is the link's, whatever the frame says.
    pub(super) fn frame(&mut self, gateway: NodeId, frame: ToWorker) {
        match frame {
            ToWorker::Heartbeat { n, open } => {
                let open = open
                    .into_iter()
                    .map(|kept| convert::kept(gateway, kept))
                    .collect();
                self.feed(HostInput::Digest { gateway, n, open });
            }
            ToWorker::Reserve {
                key,
                work,
                until,
                deadline_ms,
            } => {
                let attempt = convert::attempt(gateway, key);
                self.open(attempt, work, until, deadline_ms, FromOwner::Reserve);
            }
            ToWorker::Prefill {
                key,
                work,
                until,
                deadline_ms,
            } => {
                let attempt = convert::attempt(gateway, key);
                self.open(attempt, work, until, deadline_ms, FromOwner::Prefill);
            }
            ToWorker::Pull { key, ticket, first } => self.pull(convert::attempt(gateway, key), ticket, first),
            ToWorker::Allow { key, until } => {
                self.owner(convert::attempt(gateway, key), FromOwner::Allow { until });
            }
            ToWorker::Release { key } => self.owner(convert::attempt(gateway, key), FromOwner::Release),
            ToWorker::Close { key } => self.owner(convert::attempt(gateway, key), FromOwner::Close),
            ToWorker::Goodbye { reason } => {
                info!(worker = self.name, %gateway, reason, "a gateway is leaving");
                // Its link is about to end; nobody waits for that.
                self.feed(HostInput::GatewayLost { gateway });
            }
        }
    }

    fn owner(&mut self, attempt: Attempt, message: FromOwner) {
        self.feed(HostInput::Owner { attempt, message });
    }

    fn open(
        &mut self,
        attempt: Attempt,
        work: wire::Work,
        until: u32,
        deadline_ms: u64,
        message: impl FnOnce(room::Job) -> FromOwner,
    ) {
        let spec = self.host.spec();
        let sizes = convert::work_to_host(&work, spec.block_tokens, until, self.clock.now(), deadline_ms);
        // If no stay comes of it, it goes as that of a stay that ends does.
        self.contents.open(attempt, work);
        self.owner(attempt, message(sizes));
    }

    fn pull(&mut self, attempt: Attempt, ticket: wire::Ticket, first: Vec<TokenOut>) {
        let sampled = u32::try_from(first.len()).unwrap_or(u32::MAX);
        if let Some(content) = self.contents.get_mut(attempt)
            && content.ticket.is_none()
        {
            content.ticket = Some(ticket);
            content.sampled_elsewhere = first;
        }
        self.owner(attempt, FromOwner::Pull { sampled });
    }

    /// An event of the engine's. `Err` when the engine is gone: the worker cannot go on as this incarnation.
    pub(super) fn engine_event(&mut self, event: EngineEvent) -> Result<(), engine::DownReason> {
        match event {
            EngineEvent::Step(report) => self.step(report),
            EngineEvent::Stopped { key } => self.engine_stopped(key),
            EngineEvent::Refused { key, why } => {
                debug!(worker = self.name, ?key, %why, "the engine refused a sequence");
                self.engine_stopped(key);
            }
            EngineEvent::Down { why } => {
                error!(worker = self.name, %why, "the engine is down");
                self.feed(HostInput::EngineDown);
                return Err(why);
            }
        }
        Ok(())
    }

    fn engine_stopped(&mut self, key: engine::SequenceKey) {
        if let Some(attempt) = self.contents.attempt(key) {
            self.feed(HostInput::Engine {
                attempt,
                event: EngineInput::Stopped,
            });
        }
    }

    /// One step: first who has left without a token, then how far each sequence is, then what was sampled, then who needs room. Told to the
    /// gateways as one frame each.
    fn step(&mut self, report: StepReport) {
        for (key, why) in report.failed {
            if let Some(attempt) = self.contents.attempt(key) {
                warn!(worker = self.name, room = %attempt, %why, "a sequence has no next token");
            }
            self.engine_input(key, EngineInput::NoToken);
        }
        for (key, positions) in report.computed {
            self.engine_input(key, EngineInput::Computed { positions });
        }
        for token in report.tokens {
            self.sampled(token);
        }
        for (key, n) in report.wants {
            self.engine_input(key, EngineInput::NeedBlocks { n });
        }
        self.settle();
    }

    fn engine_input(&mut self, key: engine::SequenceKey, event: EngineInput) {
        if let Some(attempt) = self.contents.attempt(key) {
            let now = self.clock.now();
            self.host.handle_input(now, HostInput::Engine { attempt, event });
        }
    }

    /// The end token says that the answer is whole; it is no part of it.
    fn sampled(&mut self, event: TokenEvent) {
        let finish = event.finish.map(convert::finish_from_engine);
        let is_end = event.finish == Some(engine::FinishReason::Stop);
        let Some(attempt) = self.contents.attempt(event.key) else {
            return;
        };
        if let Some(content) = self.contents.get_mut(attempt)
            && !is_end
        {
            content
                .untold
                .push(convert::token_out(event.token, event.logprobs));
        }
        let count = u32::from(!is_end);
        self.engine_input(event.key, EngineInput::Sampled { count, finish });
    }

    /// An event of the transfer's. `Err` when the transfer is gone: the worker cannot go on as this incarnation.
    pub(super) fn kv_event(&mut self, event: KvEvent) -> Result<(), String> {
        let (attempt, event) = match event {
            KvEvent::Withdrawn { key } => (convert::attempt_of_transfer(key), TransferInput::Withdrawn),
            KvEvent::ReadEnded { id, result } => {
                let Some(attempt) = self.reads.remove(&id) else {
                    return Ok(());
                };
                let ok = result.is_ok();
                match result {
                    Ok(stats) => {
                        if let Some(content) = self.contents.get_mut(attempt) {
                            content.pull = Some(stats);
                        }
                    }
                    Err(error) => {
                        info!(worker = self.name, room = %attempt, %error, "a pull ended without the KV");
                    }
                }
                (attempt, TransferInput::ReadEnded { ok })
            }
            KvEvent::Down { why } => {
                error!(worker = self.name, %why, "the KV transfer is down");
                return Err(format!("its KV transfer is down: {why}"));
            }
        };
        self.feed(HostInput::Transfer { attempt, event });
        Ok(())
    }

    /// Takes no new rooms from now on. Its gateways hear so at once, and send none.
    pub(super) fn drain(&mut self) {
        if !self.host.is_draining() {
            self.feed(HostInput::Drain);
            self.outbox.send_all(&super::leaving());
        }
    }

    /// A deadline of the host's has come. `Err` when the engine hangs: the proofs that the host insists on will never come.
    pub(super) fn deadline(&mut self) -> Result<(), String> {
        let now = self.clock.now();
        self.host.handle_timeout(now);
        self.settle();
        let limits = &self.host.spec().limits;
        let limit = limits.prefill_no_progress.max(limits.stall);
        let lasts = self.engine.step_lasts();
        if lasts.as_micros() <= u128::from(limit.micros) {
            self.step_overdue = None;
            return Ok(());
        }
        // Whoever is in the step has been given up, and the step itself was told to end. It has as long again: this process may have
        // stood still as a whole. Nothing that it holds is ever freed: the next incarnation has another pool.
        if now - *self.step_overdue.get_or_insert(now) < limit {
            return Ok(());
        }
        error!(worker = self.name, ?lasts, "the engine hangs in a step");
        Err(format!("its engine hangs in a step of {} ms", lasts.as_millis()))
    }

    /// What every heartbeat tells of this worker.
    pub(super) fn stats(&self) -> WorkerStats {
        let occupancy = self.host.occupancy();
        let totals = self.transfer.totals();
        WorkerStats {
            blocks_total: occupancy.total,
            blocks_free: occupancy.free,
            blocks_cached: occupancy.cached,
            blocks_leased: occupancy.leased,
            blocks_quarantined: occupancy.quarantined,
            slots_total: self.host.spec().slots,
            slots_used: self.host.slots_used(),
            prefill_backlog_tokens: self.host.prefill_backlog(),
            draining: self.host.is_draining(),
            kv_bytes_in: totals.bytes_in,
            kv_bytes_out: totals.bytes_out,
            kv_transport: totals.transport.to_owned(),
        }
    }
}
