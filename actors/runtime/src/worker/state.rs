//! A worker's state, and how what happens around it becomes inputs of its host.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use engine::{EngineEvent, EngineHandle, StepReport, TokenEvent};
use kv::{KvEvent, KvTransfer, ReadId};
use mesh::Dialer;
use observe::{NodeWhat, Recorder, StayWhat, Text};
use ractor::ActorRef;
use room::{Attempt, EngineInput, FromOwner, Host, HostCounters, HostInput, NodeId, Span, TransferInput};
use wire::{ToGateway, ToWorker, TokenOut, WorkerStats};

use super::Because;
use super::board::StayBoard;
use super::content::Contents;
use super::inbox::Reader;
use super::outbox::Outbox;
use super::telling::Sampled;
use super::transfer::LastOf;
use crate::alarm::Alarm;
use crate::clock::Clock;
use crate::convert;
use crate::pool::{Asker, PoolMessage};

/// Everything the worker's actor owns.
pub(crate) struct State {
    pub(super) name: Text,
    pub(super) node: NodeId,
    pub(super) role: wire::Role,
    /// Why it takes no new rooms, while it takes none.
    pub(super) because: Because,
    pub(super) supervisor: ActorRef<PoolMessage>,
    pub(super) clock: Clock,
    pub(super) recorder: Recorder,
    pub(super) board: Arc<StayBoard>,
    pub(super) inbox: Reader,
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
    /// Empty between two messages.
    pub(super) untold: RefCell<BTreeMap<Attempt, Sampled>>,
    /// Attempts that nothing is left of here. Empty between two inputs of the host.
    pub(super) gone: Vec<Attempt>,
    /// What the host has counted, as last told.
    pub(super) counted: HostCounters,
    pub(super) alarm: Alarm,
    /// Dropped with the state: the links end, and every gateway fences this worker. None once it has left them in order.
    pub(super) dialer: Option<Dialer>,
    /// Where operators find this worker.
    pub(super) admin: Option<SocketAddr>,
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
                self.tell_node(NodeWhat::GatewayLeaving {
                    name: Arc::clone(&self.name),
                    gateway,
                    why: reason.into(),
                });
                // Its link is about to end; nobody waits for that.
                self.feed(HostInput::GatewayLost { gateway });
            }
            ToWorker::KeepTrace { seq } => self.keep_trace(gateway, seq),
            ToWorker::Order { n, order } => {
                // A pool that is gone takes this worker with it.
                let asker = Asker::Gateway { gateway, n };
                let _ = self.supervisor.cast(PoolMessage::Order(order, asker));
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
        self.contents.open(attempt, work, sizes.deadline);
        self.owner(attempt, message(sizes));
    }

    fn pull(&mut self, attempt: Attempt, ticket: wire::Ticket, first: Vec<TokenOut>) {
        let sampled = u32::try_from(first.len()).unwrap_or(u32::MAX);
        if let Some(content) = self.contents.get_mut(attempt)
            && content.ticket.is_none()
        {
            content.ticket = Some(ticket);
            content.sampled_elsewhere = first;
            content.has_sampled = true;
        }
        self.owner(attempt, FromOwner::Pull { sampled });
    }

    /// An event of the engine's. `Err` when the engine is gone: the worker cannot go on as this incarnation.
    pub(super) fn engine_event(&mut self, event: EngineEvent) -> Result<(), String> {
        match event {
            EngineEvent::Step(report) => self.step(report),
            EngineEvent::Stopped { key } => self.engine_stopped(key),
            EngineEvent::Refused { key, why } => {
                self.engine_failed(key, &why);
                self.engine_stopped(key);
            }
            EngineEvent::Down { why } => {
                self.tell_node(NodeWhat::EngineDown {
                    name: Arc::clone(&self.name),
                    why: why.to_string().into(),
                });
                let why = format!("its engine is down: {why}");
                self.contents.trouble_all(&why);
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

    /// One step: first who has left without a token, then how far each sequence is, then what was sampled, then who needs room.
    fn step(&mut self, report: StepReport) {
        if report.batch > 0 {
            self.tell_node(NodeWhat::Step {
                worker: self.node,
                batch: report.batch,
                tokens: report.step_tokens,
                lasted: Span {
                    micros: report.micros,
                },
            });
        }
        for (key, why) in report.failed {
            self.engine_failed(key, &why);
            self.engine_input(key, EngineInput::NoToken);
        }
        for (key, positions) in report.computed {
            self.computed(key, positions);
        }
        for token in report.tokens {
            self.sampled(token);
        }
        for (key, n) in report.wants {
            if let Some(attempt) = self.contents.attempt(key) {
                self.tell_stay(attempt, StayWhat::WantsBlocks { blocks: n });
            }
            self.engine_input(key, EngineInput::NeedBlocks { n });
        }
        self.carry_out();
    }

    fn engine_failed(&mut self, key: engine::SequenceKey, why: &dyn std::fmt::Display) {
        if let Some(attempt) = self.contents.attempt(key) {
            self.contents.trouble(attempt, format!("the engine: {why}"));
            let why = why.to_string().into();
            self.tell_stay(attempt, StayWhat::EngineFailed { why });
        }
    }

    /// A chunk of a prompt is told of; what is computed of an answer is not.
    fn computed(&mut self, key: engine::SequenceKey, positions: u32) {
        let Some(attempt) = self.contents.attempt(key) else {
            return;
        };
        let content = self.contents.get(attempt);
        if content.is_some_and(|content| !content.has_sampled) {
            self.tell_stay(attempt, StayWhat::Computed { positions });
        }
        self.engine_input_of(attempt, EngineInput::Computed { positions });
    }

    fn engine_input(&mut self, key: engine::SequenceKey, event: EngineInput) {
        if let Some(attempt) = self.contents.attempt(key) {
            self.engine_input_of(attempt, event);
        }
    }

    fn engine_input_of(&mut self, attempt: Attempt, event: EngineInput) {
        let now = self.clock.now();
        self.host.handle_input(now, HostInput::Engine { attempt, event });
    }

    /// The end token says that the answer is whole; it is no part of it.
    fn sampled(&mut self, event: TokenEvent) {
        let finish = event.finish.map(convert::finish_from_engine);
        let is_end = event.finish == Some(engine::FinishReason::Stop);
        let Some(attempt) = self.contents.attempt(event.key) else {
            return;
        };
        if let Some(content) = self.contents.get_mut(attempt) {
            content.has_sampled = true;
            if !is_end {
                content
                    .untold
                    .push(convert::token_out(event.token, event.logprobs));
            }
        }
        let count = u32::from(!is_end);
        if !is_end {
            self.tell_sampled(attempt, count);
        }
        self.engine_input_of(attempt, EngineInput::Sampled { count, finish });
    }

    /// An event of the transfer's. `Err` when the transfer is gone: the worker cannot go on as this incarnation.
    pub(super) fn kv_event(&mut self, event: KvEvent) -> Result<(), String> {
        let (attempt, event) = match event {
            KvEvent::Withdrawn { key } => {
                let attempt = convert::attempt_of_transfer(key);
                self.tell_stay(attempt, StayWhat::Withdrawn);
                (attempt, TransferInput::Withdrawn)
            }
            KvEvent::ReadEnded { id, result } => {
                let Some(attempt) = self.reads.remove(&id) else {
                    return Ok(());
                };
                let ok = result.is_ok();
                let began = self.contents.get(attempt).and_then(|content| content.pull_began);
                let lasted = began.map_or_else(Span::default, |began| self.clock.now() - began);
                self.tell_stay(attempt, read_ended(&result, lasted));
                let transport = self.transfer.totals().transport;
                if let Some(content) = self.contents.get_mut(attempt) {
                    match result {
                        Ok(stats) => content.pull = Some(stats),
                        Err(error) => content.trouble = Some(over(&error, transport)),
                    }
                }
                (attempt, TransferInput::ReadEnded { ok })
            }
            KvEvent::Down { why } => {
                self.tell_node(NodeWhat::TransferDown {
                    name: Arc::clone(&self.name),
                    why: why.to_string().into(),
                });
                return Err(format!("its KV transfer is down: {why}"));
            }
        };
        self.feed(HostInput::Transfer { attempt, event });
        Ok(())
    }

    /// Takes no new rooms from now on. Its gateways hear so at once, and send none.
    pub(super) fn drain(&mut self, because: Because) {
        if !self.host.is_draining() {
            self.because = because;
            let name = Arc::clone(&self.name);
            let why = because.words().into();
            self.tell_node(NodeWhat::Draining { name, why });
            self.feed(HostInput::Drain);
            self.outbox.send_all(&super::leaving(because));
            self.settle();
        }
    }

    /// Takes new rooms again. Its gateways hear so with its next answer to a heartbeat.
    pub(super) fn undrain(&mut self) {
        if self.host.is_draining() {
            let name = Arc::clone(&self.name);
            self.tell_node(NodeWhat::Undrained { name });
            self.feed(HostInput::Undrain);
            self.settle();
        }
    }

    /// Tells a gateway what becomes of its order. One whose link is gone has drawn its own conclusion.
    pub(super) fn ordered(&mut self, gateway: NodeId, n: u64, refused: Option<String>) {
        let refused = refused.map(|why| convert::reason(&why));
        self.outbox.send(gateway, &ToGateway::Ordered { n, refused });
    }

    /// A deadline of the host's has come. `Err` when the engine hangs: the proofs that the host insists on will never come.
    pub(super) fn deadline(&mut self) -> Result<(), String> {
        let now = self.clock.now();
        self.host.handle_timeout(now);
        self.carry_out();
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
        self.tell_node(NodeWhat::EngineHangs {
            name: Arc::clone(&self.name),
            lasts: convert::span(lasts),
        });
        Err(format!("its engine hangs in a step of {} ms", lasts.as_millis()))
    }

    /// What gateways hear if this worker ends as it is now; none: that it is gone.
    pub(super) fn last_words(&self, words: Option<Cow<'static, str>>) {
        if let Some(dialer) = &self.dialer {
            dialer.last_words(words);
        }
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

/// A failed read in words. What would have carried it may not be known yet.
fn over(error: &kv::ReadError, transport: &str) -> String {
    match transport {
        "" => error.to_string(),
        transport => format!("{error}, reading over {transport}"),
    }
}

fn read_ended(result: &Result<kv::ReadStats, kv::ReadError>, lasted: Span) -> StayWhat {
    match result {
        Ok(stats) => StayWhat::ReadDone {
            bytes: stats.bytes,
            descriptors: stats.descriptors,
            transport: stats.transport.into(),
            lasted,
        },
        Err(error) => StayWhat::ReadFailed {
            why: error.to_string().into(),
            lasted,
        },
    }
}
