//! A worker: the real host, ledger and scheduler, with steps that take their time in the world's hands.

mod content;

use std::collections::VecDeque;

use engine::{
    EngineConfig, FinishReason, Goal, ModelSpec, PoolShape, Sampled, Scheduler, SequenceKey, StepPlan,
    StepReport,
};
use room::{
    Advert, Attempt, CacheChange, EngineInput, Finish, FromOwner, Generation, Host, HostCommand, HostInput,
    HostSpec, NodeId, Pace, Role, Time, ToOwner, TransferInput, WorkerSpec,
};

use crate::latency::{Batch, Latency};
use crate::report::Tally;
use crate::setup::Setup;
use crate::trace::BLOCK_TOKENS;
use content::Contents;

/// What a worker tells its gateway at one time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    pub(crate) told: Vec<(Attempt, ToOwner)>,
    pub(crate) changes: Vec<CacheChange>,
    pub(crate) beat: Option<(Advert, Pace)>,
}

impl Frame {
    pub(crate) fn is_empty(&self) -> bool {
        self.told.is_empty() && self.changes.is_empty() && self.beat.is_none()
    }
}

/// A read that the world has to let take its time.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) attempt: Attempt,
    pub(crate) source: NodeId,
    pub(crate) blocks: u32,
}

/// A step under way.
#[derive(Debug)]
struct Step {
    plan: StepPlan,
    batch: Batch,
    began: Time,
    ends: Time,
}

/// One worker.
pub(crate) struct Worker {
    pub(crate) spec: WorkerSpec,
    host: Host,
    scheduler: Scheduler,
    latency: Latency,
    pace: Pace,
    contents: Contents,
    /// What the engine was told during a step.
    waiting: VecDeque<HostCommand>,
    step: Option<Step>,
    /// What is to be told.
    pub(crate) frame: Frame,
    /// What is to be read.
    pub(crate) readings: Vec<Reading>,
    pub(crate) tally: Tally,
}

impl Worker {
    pub(crate) fn new(role: Role, setup: &Setup) -> Self {
        let is_decode = role == Role::Decode;
        let blocks = if is_decode {
            setup.decode_blocks
        } else {
            setup.blocks
        };
        let chunk = if is_decode {
            setup.decode_chunk
        } else {
            setup.prefill_chunk
        };
        let mut host = Host::new(HostSpec {
            block_tokens: BLOCK_TOKENS,
            blocks,
            slots: setup.slots,
            mixed: is_decode && setup.decode_computes(),
            limits: setup.host_limits(),
        });
        host.follow_cache(4 * blocks as usize);
        let config = EngineConfig {
            step_tokens: chunk + if is_decode { setup.slots } else { 0 },
            chunk_tokens: chunk,
            max_sequences: 2 * setup.slots,
            ..EngineConfig::default()
        };
        let model = ModelSpec {
            name: String::new(),
            vocabulary: 1,
            context_tokens: u32::MAX,
            end_tokens: Vec::new(),
            layout_hash: 0,
        };
        let shape = PoolShape {
            blocks,
            block_tokens: BLOCK_TOKENS as usize,
            layers: 1,
            kv_heads: 1,
            head_dim: 1,
        };
        Self {
            spec: WorkerSpec {
                role,
                blocks,
                block_tokens: BLOCK_TOKENS,
                slots: setup.slots,
            },
            host,
            scheduler: Scheduler::new(config, &model, &shape),
            latency: setup.model.latency(),
            pace: Pace::default(),
            contents: Contents::default(),
            waiting: VecDeque::new(),
            step: None,
            frame: Frame::default(),
            readings: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// An order of the gateway's; `source` is where to pull from.
    pub(crate) fn order(&mut self, now: Time, attempt: Attempt, message: FromOwner, source: Option<NodeId>) {
        match &message {
            FromOwner::Reserve(job) | FromOwner::Prefill(job) => self.contents.open(attempt, job),
            FromOwner::Pull { sampled } => self.contents.sampled_elsewhere(attempt, *sampled, source),
            _ => {}
        }
        self.host.handle_input(now, HostInput::Owner { attempt, message });
        self.settle(now);
    }

    /// The read of an attempt is over, and took so long.
    pub(crate) fn read_ended(&mut self, now: Time, attempt: Attempt, blocks: u32, lasted_us: u64) {
        self.pace.pulled(blocks * BLOCK_TOKENS, lasted_us);
        let event = TransferInput::ReadEnded { ok: true };
        self.host
            .handle_input(now, HostInput::Transfer { attempt, event });
        self.settle(now);
    }

    /// Time to say how it is.
    pub(crate) fn beat(&mut self, now: Time) {
        if self.host.poll_timeout().is_some_and(|at| at <= now) {
            self.host.handle_timeout(now);
            self.settle(now);
        }
        self.contents.forget_gone(&self.host);
        let advert = Advert {
            available_blocks: self.host.ledger().available(),
            free_slots: self.spec.slots.saturating_sub(self.host.slots_used()),
            draining: false,
        };
        self.frame.beat = Some((advert, self.pace));
    }

    /// Begins a step if there is one to begin: when it ends.
    pub(crate) fn begin_step(&mut self, now: Time) -> Option<Time> {
        if self.step.is_some() {
            return None;
        }
        while let Some(command) = self.waiting.pop_front() {
            self.command_engine(now, command);
        }
        self.settle(now);
        if self.scheduler.sequences() == 0 {
            return None;
        }
        let plan = loop {
            match self.scheduler.next_step() {
                Some(plan) => break plan,
                None if self.serve_wants(now) => {}
                None => return None,
            }
        };
        let batch = self.batch(&plan);
        let lasts = self.latency.step_us(&batch);
        let ends = now + room::Span { micros: lasts };
        self.step = Some(Step {
            plan,
            batch,
            began: now,
            ends,
        });
        Some(ends)
    }

    /// The step that ends now has been computed.
    pub(crate) fn end_step(&mut self, now: Time) {
        let Some(step) = self.step.take_if(|step| step.ends <= now) else {
            return;
        };
        let lasted = (now - step.began).micros;
        self.pace
            .ran(step.batch.prompt_tokens(), step.batch.context, lasted);
        self.tally.ran(&step.batch, lasted);
        let asked = step.plan.parts().iter().enumerate();
        let sampled = asked.filter(|(_, part)| part.samples).map(|(slice, _)| Sampled {
            slice,
            token: Ok(0),
            logprobs: None,
        });
        match self.scheduler.complete(&step.plan, sampled.collect()) {
            Ok(report) => self.report(now, report),
            Err(_) => self.tally.broken += 1,
        }
        self.settle(now);
    }

    /// Whether nothing is held here, and nothing is under way.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.host.occupancy().is_quiescent() && self.scheduler.sequences() == 0 && self.contents.is_empty()
    }

    /// All that its cache has, and the number of its next change.
    pub(crate) fn cache(&self) -> (u64, Vec<room::BlockHash>) {
        self.host.ledger().contents()
    }

    fn batch(&self, plan: &StepPlan) -> Batch {
        let mut batch = Batch::default();
        for part in plan.parts() {
            let Some(content) = self.contents.of(part.key) else {
                continue;
            };
            if content.has_sampled {
                batch.answers += 1;
                batch.context += u64::from(content.computed) + 1;
            } else {
                batch.prompts.push((content.computed, part.tokens));
            }
        }
        batch
    }

    /// Asks for blocks that nobody asked for yet; whether there was something to ask for.
    fn serve_wants(&mut self, now: Time) -> bool {
        let wants = self.scheduler.take_wants();
        for (key, n) in &wants {
            self.engine_did(now, *key, EngineInput::NeedBlocks { n: *n });
        }
        self.settle(now);
        !wants.is_empty()
    }

    fn report(&mut self, now: Time, report: StepReport) {
        for (key, positions) in report.computed {
            if self.contents.computed(key, positions) {
                self.engine_did(now, key, EngineInput::Computed { positions });
            }
        }
        for token in report.tokens {
            self.contents.has_sampled(token.key);
            let finish = token.finish.map(|finish| match finish {
                FinishReason::Stop => Finish::Stop,
                FinishReason::Length => Finish::Length,
            });
            self.engine_did(now, token.key, EngineInput::Sampled { count: 1, finish });
        }
        for (key, n) in report.wants {
            self.engine_did(now, key, EngineInput::NeedBlocks { n });
        }
    }

    fn engine_did(&mut self, now: Time, key: SequenceKey, event: EngineInput) {
        if let Some(attempt) = self.contents.attempt(key) {
            self.host.handle_input(now, HostInput::Engine { attempt, event });
        }
    }

    /// Carries out what the host commands.
    fn settle(&mut self, now: Time) {
        let mut ended = false;
        while let Some(command) = self.host.poll_command() {
            match command {
                HostCommand::Tell { attempt, message } => {
                    ended |= matches!(
                        message,
                        ToOwner::Closed | ToOwner::Failed(_) | ToOwner::Refused(_) | ToOwner::Finished { .. }
                    );
                    self.frame.told.push((attempt, message));
                }
                HostCommand::Offer { attempt, .. } => self.transferred(now, attempt, TransferInput::Offered),
                HostCommand::Withdraw { attempt } => self.transferred(now, attempt, TransferInput::Withdrawn),
                HostCommand::Read { attempt, into, .. } => self.read(now, attempt, into.len()),
                // It ends by itself, and that is the proof. There are no digests.
                HostCommand::CancelRead { .. } | HostCommand::AnswerDigest { .. } => {}
                command if self.step.is_some() => self.waiting.push_back(command),
                command => self.command_engine(now, command),
            }
        }
        if ended {
            self.contents.forget_gone(&self.host);
        }
        while let Some(change) = self.host.poll_cache_change() {
            self.frame.changes.push(change);
        }
    }

    fn transferred(&mut self, now: Time, attempt: Attempt, event: TransferInput) {
        self.host
            .handle_input(now, HostInput::Transfer { attempt, event });
    }

    fn read(&mut self, now: Time, attempt: Attempt, blocks: usize) {
        match self.contents.get(attempt).and_then(|content| content.source) {
            Some(source) => self.readings.push(Reading {
                attempt,
                source,
                blocks: u32::try_from(blocks).unwrap_or(u32::MAX),
            }),
            None => self.transferred(now, attempt, TransferInput::ReadEnded { ok: false }),
        }
    }

    /// Between two steps.
    fn command_engine(&mut self, now: Time, command: HostCommand) {
        match command {
            HostCommand::StartPrefill {
                attempt,
                blocks,
                computed,
                whole,
                ..
            } => {
                if let Some(content) = self.contents.get_mut(attempt) {
                    content.computed = computed;
                    if attempt.generation == Generation::FIRST {
                        self.tally.found(content.positions, computed);
                    }
                }
                let goal = if whole { Goal::Answer } else { Goal::FirstToken };
                self.start(now, attempt, &blocks, goal);
            }
            HostCommand::StartDecode {
                attempt,
                blocks,
                computed,
                ..
            } => {
                if let Some(content) = self.contents.get_mut(attempt) {
                    content.computed = computed;
                    content.has_sampled = true;
                }
                self.start(now, attempt, &blocks, Goal::Answer);
            }
            HostCommand::Grow { attempt, blocks } => {
                if let Some(content) = self.contents.get(attempt) {
                    let blocks: Vec<u32> = blocks.iter().map(|block| block.0).collect();
                    // Only a block outside the pool is refused.
                    self.tally.broken += u64::from(self.scheduler.grow(content.key, &blocks).is_err());
                }
            }
            HostCommand::StopEngine { attempt } => {
                if let Some(content) = self.contents.get(attempt) {
                    self.scheduler.stop(content.key);
                }
                self.stopped(now, attempt);
            }
            _ => {}
        }
    }

    fn start(&mut self, now: Time, attempt: Attempt, blocks: &[room::BlockId], goal: Goal) {
        let spec = self
            .contents
            .get(attempt)
            .map(|content| content.sequence(blocks, goal));
        let taken = spec.is_some_and(|spec| self.scheduler.add(spec).is_ok());
        if !taken {
            self.tally.broken += 1;
            self.stopped(now, attempt);
        }
    }

    fn stopped(&mut self, now: Time, attempt: Attempt) {
        let event = EngineInput::Stopped;
        self.host.handle_input(now, HostInput::Engine { attempt, event });
    }
}
