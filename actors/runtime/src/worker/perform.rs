//! Carries out what the [`Host`](room::Host) decides: tells gateways, commands the engine, moves KV.

use kv::{Offer, Read, ReadId};
use observe::StayWhat;
use room::{
    Attempt, AttemptError, BlockId, EngineInput, HostCommand, HostInput, NodeId, PhaseKind, ToOwner,
    TransferInput,
};
use wire::{Ticket, ToGateway, WorkerStats};

use super::local::Figures;
use super::state::State;
use crate::convert;

impl State {
    /// Feeds one input and carries out everything that follows from it. [`State::settle`] is to follow before the actor rests.
    pub(super) fn feed(&mut self, input: HostInput) {
        let now = self.clock.now();
        self.host.handle_input(now, input);
        self.carry_out();
    }

    /// Carries out commands until there are none, and forgets the content of stays that are gone.
    pub(super) fn carry_out(&mut self) {
        loop {
            // The steps first: what is told by carrying out a command comes after that which led to it.
            while let Some(step) = self.host.poll_transition() {
                if step.to.is_none() {
                    self.gone.push(step.attempt);
                }
                self.tell_step(step);
            }
            let Some(command) = self.host.poll_command() else {
                break;
            };
            if let Some(answer) = self.perform(command) {
                let now = self.clock.now();
                self.host.handle_input(now, answer);
            }
        }
        for attempt in self.gone.drain(..) {
            if self.host.stay(attempt).is_none() {
                self.contents.forget(attempt);
            }
        }
    }

    /// Tells what is to be told together, and sets the alarm: once after all that came together was carried out.
    pub(super) fn settle(&mut self) {
        // Not by the transitions alone: of these some may be lost.
        if self.contents.len() > self.host.stays_len() {
            self.contents.retain(|attempt| self.host.stay(attempt).is_some());
        }
        debug_assert_eq!(
            self.contents.len(),
            self.host.stays_len(),
            "each stay has its content"
        );
        self.tell_all_sampled();
        self.tell_counters();
        self.outbox.flush();
        self.alarm.set(self.host.poll_timeout());
    }

    /// Performs one command; what it leads to at once, if anything, is fed back.
    fn perform(&mut self, command: HostCommand) -> Option<HostInput> {
        match command {
            HostCommand::Tell { attempt, message } => {
                self.tell(attempt, message);
                None
            }
            HostCommand::AnswerDigest { gateway, n, held } => {
                self.answer_digest(gateway, n, &held);
                None
            }
            HostCommand::StartPrefill {
                attempt,
                blocks,
                computed,
                whole,
                until,
            } => {
                self.tell_cached(attempt, computed);
                self.tell_stay(attempt, StayWhat::PromptStarted { cached: computed });
                let spec = self
                    .contents
                    .get(attempt)
                    .map(|content| content.prefill(&blocks, computed, whole, until));
                self.start(attempt, spec)
            }
            HostCommand::StartDecode {
                attempt,
                blocks,
                computed,
                until,
            } => {
                let spec = self
                    .contents
                    .get(attempt)
                    .map(|content| content.decode(&blocks, computed, until));
                self.start(attempt, spec)
            }
            HostCommand::Grow { attempt, blocks } => {
                let blocks = indices(&blocks);
                self.command(attempt, |key| engine::Command::Grow { key, blocks })
            }
            HostCommand::Allow { attempt, until } => {
                let until = self.contents.get(attempt)?.position(until);
                self.command(attempt, |key| engine::Command::Allow { key, until })
            }
            HostCommand::StopEngine { attempt } => self.command(attempt, |key| engine::Command::Stop { key }),
            HostCommand::Offer { attempt, blocks } => Some(self.offer(attempt, &blocks)),
            HostCommand::Withdraw { attempt } => {
                self.transfer.withdraw(convert::transfer_key(attempt));
                None
            }
            HostCommand::Read { attempt, from, into } => self.read(attempt, from, &into),
            HostCommand::CancelRead { attempt } => {
                let reads = self.reads.iter().filter(|(_, reader)| **reader == attempt);
                reads.for_each(|(id, _)| self.transfer.cancel(*id));
                if planted!(CancelDropsRead) {
                    self.reads.retain(|_, reader| *reader != attempt);
                    return Some(read_failed(attempt));
                }
                None
            }
        }
    }

    fn start(&self, attempt: Attempt, spec: Option<engine::SequenceSpec>) -> Option<HostInput> {
        let sent = spec.map(|spec| self.engine.send(engine::Command::Start(spec)));
        (!matches!(sent, Some(Ok(())))).then_some(stopped(attempt))
    }

    /// An engine that is down holds nothing either: its end is its own event. A full queue is that of an engine that hangs in a step: a
    /// stop is repeated until there is proof, and a sequence that is not given its blocks, or its leave, ends with its stay's deadline.
    fn command(
        &self,
        attempt: Attempt,
        command: impl FnOnce(engine::SequenceKey) -> engine::Command,
    ) -> Option<HostInput> {
        let key = self.contents.get(attempt)?.key;
        if let Err(error) = self.engine.send(command(key)) {
            let why = error.to_string().into();
            self.tell_stay(attempt, StayWhat::NotCommanded { why });
        }
        None
    }

    /// How much of the prompt need not be computed. (What decode was granted with says how much need not be moved.)
    fn tell_cached(&mut self, attempt: Attempt, computed: u32) {
        let reserved = ToGateway::Reserved {
            key: convert::room_key(attempt),
            cached_blocks: computed / self.host.spec().block_tokens.max(1),
        };
        self.outbox.send(attempt.room.gateway, &reserved);
    }

    fn offer(&mut self, attempt: Attempt, blocks: &[BlockId]) -> HostInput {
        let key = convert::transfer_key(attempt);
        let capability: u128 = rand::random();
        let offered = self.transfer.offer(Offer {
            key,
            capability,
            blocks: indices(blocks),
        });
        let event = match (offered, self.contents.get_mut(attempt)) {
            (Ok(()), Some(content)) => {
                content.ticket = Some(Ticket {
                    capability: capability.to_le_bytes(),
                    source: self.transfer.address().0,
                    blocks: u32::try_from(blocks.len()).unwrap_or(u32::MAX),
                    positions: u32::try_from(content.work.tokens.len()).unwrap_or(u32::MAX),
                });
                let blocks = convert::count(blocks.len());
                self.tell_stay(attempt, StayWhat::Offered { blocks });
                TransferInput::Offered
            }
            (offered, _) => {
                let why = offered
                    .err()
                    .map_or_else(|| "nothing is known of it".to_owned(), |error| error.to_string());
                self.contents
                    .trouble(attempt, format!("its KV cannot be offered: {why}"));
                let why = why.into();
                self.tell_stay(attempt, StayWhat::NotOffered { why });
                TransferInput::Withdrawn
            }
        };
        HostInput::Transfer { attempt, event }
    }

    fn read(&mut self, attempt: Attempt, from: u32, into: &[BlockId]) -> Option<HostInput> {
        let now = self.clock.now();
        let content = self.contents.get_mut(attempt)?;
        let Some(ticket) = &content.ticket else {
            return Some(read_failed(attempt));
        };
        let id = ReadId(self.next_read);
        self.next_read += 1;
        let read = Read {
            id,
            key: convert::transfer_key(attempt),
            capability: u128::from_le_bytes(ticket.capability),
            source: kv::SourceAddress(ticket.source.clone()),
            from,
            into: indices(into),
        };
        content.pull_began = Some(now);
        match self.transfer.read(read) {
            Ok(()) => {
                self.reads.insert(id, attempt);
                let (blocks, cached_blocks) = (convert::count(into.len()), from);
                self.tell_stay(
                    attempt,
                    StayWhat::ReadStarted {
                        blocks,
                        cached_blocks,
                    },
                );
                None
            }
            Err(error) => {
                self.contents
                    .trouble(attempt, format!("the KV transfer: {error}"));
                let (why, lasted) = (error.to_string().into(), room::Span::default());
                self.tell_stay(attempt, StayWhat::ReadFailed { why, lasted });
                Some(read_failed(attempt))
            }
        }
    }

    fn tell(&mut self, attempt: Attempt, message: ToOwner) {
        let gateway = attempt.room.gateway;
        let key = convert::room_key(attempt);
        let frame = match message {
            ToOwner::Tokens { from, count } => {
                if let Some(content) = self.contents.get_mut(attempt) {
                    let tokens = content.tell(attempt, from, count);
                    self.outbox.tokens(gateway, tokens);
                }
                return;
            }
            ToOwner::Finished { finish, answered } => {
                let finish = Some(convert::finish_to_wire(finish));
                let tokens = wire::RoomTokens {
                    key,
                    from: answered,
                    tokens: Vec::new(),
                    finish,
                };
                return self.outbox.tokens(gateway, tokens);
            }
            ToOwner::Reserved { cached_blocks } => ToGateway::Reserved { key, cached_blocks },
            ToOwner::Refused(why) => {
                self.tell_stay(attempt, StayWhat::Refused(why));
                self.gone.push(attempt);
                ToGateway::Refused {
                    key,
                    why: convert::refusal_to_wire(why),
                }
            }
            ToOwner::Progress { positions } => ToGateway::Progress { key, positions },
            ToOwner::Published => match self
                .contents
                .get(attempt)
                .and_then(|content| content.ticket.clone())
            {
                Some(ticket) => ToGateway::Published { key, ticket },
                None => return,
            },
            ToOwner::Pulled => self.pulled(attempt),
            ToOwner::Failed(why) => {
                if let Some(why) = self.words(attempt, why) {
                    let why = convert::words(&why);
                    self.outbox.mention(gateway, &ToGateway::Reason { key, why });
                }
                ToGateway::Failed {
                    key,
                    why: convert::attempt_error_to_wire(why),
                }
            }
            ToOwner::Closed => ToGateway::Closed { key },
        };
        self.outbox.send(gateway, &frame);
    }

    /// What there is to say of an attempt that fails for this reason.
    fn words(&self, attempt: Attempt, error: AttemptError) -> Option<String> {
        let content = self.contents.get(attempt)?;
        match error {
            AttemptError::NoProgress(PhaseKind::Prefilling | PhaseKind::Decoding) => Some(self.at_engine()),
            AttemptError::NoProgress(PhaseKind::Pulling) => {
                let reads = self.reads.values().any(|reader| *reader == attempt);
                let began = content.pull_began.filter(|_| reads)?;
                let lasts_ms = (self.clock.now() - began).as_millis();
                Some(format!("its read of the KV has lasted {lasts_ms} ms"))
            }
            _ => content.trouble.clone(),
        }
    }

    /// Whether the engine hangs, or does not get to a sequence.
    fn at_engine(&self) -> String {
        let lasts = self.engine.step_lasts();
        if lasts.is_zero() {
            return "the engine is in no step".to_owned();
        }
        format!("the engine is in a step that has lasted {} ms", lasts.as_millis())
    }

    fn pulled(&self, attempt: Attempt) -> ToGateway {
        let content = self.contents.get(attempt);
        let stats = content.and_then(|content| content.pull);
        let began = content.and_then(|content| content.pull_began);
        ToGateway::Pulled {
            key: convert::room_key(attempt),
            bytes: stats.map_or(0, |stats| stats.bytes),
            descriptors: stats.map_or(0, |stats| stats.descriptors),
            micros: began.map_or(0, |began| (self.clock.now() - began).micros),
            transport: stats.map_or("none", |stats| stats.transport).to_owned(),
        }
    }

    fn answer_digest(&mut self, gateway: NodeId, n: u64, held: &[Attempt]) {
        let now = self.clock.now();
        let held = held
            .iter()
            .filter_map(|attempt| self.host.stay(*attempt))
            .map(|stay| convert::held(&stay, now));
        let held = held.collect();
        let stats = self.show();
        self.outbox
            .send(gateway, &ToGateway::HeartbeatAck { n, held, stats });
    }

    /// Says of itself what there is to say now.
    pub(super) fn show(&self) -> WorkerStats {
        let stats = self.stats();
        self.board.show(Some(Figures {
            node: self.node,
            role: self.role,
            gateways: self.outbox.gateways(),
            step_lasts: convert::span(self.engine.step_lasts()),
            stats: stats.clone(),
        }));
        stats
    }
}

fn indices(blocks: &[BlockId]) -> Vec<u32> {
    blocks.iter().map(|block| block.0).collect()
}

fn stopped(attempt: Attempt) -> HostInput {
    HostInput::Engine {
        attempt,
        event: EngineInput::Stopped,
    }
}

fn read_failed(attempt: Attempt) -> HostInput {
    HostInput::Transfer {
        attempt,
        event: TransferInput::ReadEnded { ok: false },
    }
}
