//! A worker: its host, and an engine and a transfer that keep their own record of what they touch.

use std::collections::BTreeSet;

use room::{Attempt, BlockHash, EngineInput, Finish, Hold, HostCommand, HostInput, ToOwner, TransferInput};

use crate::host_kit::heard;

use super::laws::Law;
use super::setup::Setup;
use super::state::{AtWork, BLOCK_TOKENS, Content, Link, PROMPT, Stage, State, Task, ToGateway};

/// What led to a host's commands.
#[derive(Copy, Clone, Default)]
pub(super) struct Context<'a> {
    /// Tokens in the sequence that is to be started.
    pub(super) tokens: u32,
    /// What a digest was about.
    pub(super) asked: &'a [Attempt],
}

impl Setup {
    /// Names of the full blocks of a prompt.
    pub(super) fn names(&self, positions: u32) -> Vec<BlockHash> {
        let full = if self.shares { positions / BLOCK_TOKENS } else { 0 };
        (0..u128::from(full)).map(BlockHash).collect()
    }

    /// What has to be in the block of an attempt at this place.
    pub(super) fn expected(&self, attempt: Attempt, place: u32) -> Content {
        match self.names(PROMPT).get(place as usize) {
            Some(name) => Content::Named(*name),
            None => Content::Own(attempt, place),
        }
    }
}

impl State {
    /// Gives a host an input, or its timeout, and does what it commands.
    pub(super) fn tell_host(
        &mut self,
        setup: &Setup,
        at: usize,
        context: Context<'_>,
        input: Option<HostInput>,
    ) {
        let now = self.now;
        let commands: Vec<_> = self.workers[at].host.edit(|host| {
            match input {
                Some(input) => host.handle_input(now, input),
                None => host.handle_timeout(now),
            }
            while host.poll_transition().is_some() {}
            std::iter::from_fn(|| host.poll_command()).collect()
        });
        for command in commands {
            self.obey(at, context, command);
        }
        self.tidy(setup, at);
    }

    fn obey(&mut self, at: usize, context: Context<'_>, command: HostCommand) {
        let read = |from| Task::Read {
            from,
            stage: Stage::AtSource,
            cancelled: false,
        };
        match command {
            HostCommand::Tell { attempt, message } => self.tell(at, attempt, message),
            HostCommand::AnswerDigest { held, .. } => {
                let gone = |attempt: &Attempt| !held.contains(attempt);
                let gone: Vec<Attempt> = context.asked.iter().copied().filter(gone).collect();
                gone.into_iter().for_each(|attempt| self.proves(at, attempt));
                let node = self.workers[at].node;
                self.answer(
                    at,
                    ToGateway::Held(node, held.into_iter().collect(), context.asked.to_vec()),
                );
            }
            HostCommand::StartPrefill {
                attempt,
                blocks,
                computed,
                whole,
                until,
            } => {
                let task = Task::engine(context.tokens, computed, !whole, until);
                self.start(at, attempt, Hold::Engine, blocks, computed / BLOCK_TOKENS, task);
            }
            HostCommand::StartDecode {
                attempt,
                blocks,
                computed,
                until,
            } => {
                let task = Task::engine(computed + 1, computed, false, until);
                self.start(at, attempt, Hold::Engine, blocks, computed / BLOCK_TOKENS, task);
            }
            HostCommand::Grow { attempt, blocks } => self.change(at, (attempt, Hold::Engine), |work| {
                work.blocks.extend(blocks);
                if let Task::Engine { waits, .. } = &mut work.task {
                    *waits = false;
                }
            }),
            HostCommand::Allow { attempt, until } => self.change(at, (attempt, Hold::Engine), |work| {
                if let Task::Engine { until: before, .. } = &mut work.task {
                    *before = until.max(*before);
                }
            }),
            HostCommand::Offer { attempt, blocks } => {
                let done = u32::try_from(blocks.len()).unwrap();
                let task = Task::Offer {
                    offered: false,
                    withdrawing: false,
                };
                self.start(at, attempt, Hold::Offer, blocks, done, task);
            }
            HostCommand::Read { attempt, from, into } => {
                self.start(at, attempt, Hold::Read, into, 0, read(from));
            }
            HostCommand::StopEngine { attempt } => self.stop(at, (attempt, Hold::Engine)),
            HostCommand::Withdraw { attempt } => self.stop(at, (attempt, Hold::Offer)),
            HostCommand::CancelRead { attempt } => self.stop(at, (attempt, Hold::Read)),
        }
    }

    fn start(
        &mut self,
        at: usize,
        attempt: Attempt,
        hold: Hold,
        blocks: Vec<room::BlockId>,
        done: u32,
        task: Task,
    ) {
        let new = AtWork { blocks, done, task };
        if self.workers[at].at_work.insert((attempt, hold), new).is_some() {
            self.breaks(Law::ForeignByte);
        }
    }

    fn change(&mut self, at: usize, who: (Attempt, Hold), change: impl FnOnce(&mut AtWork)) {
        if let Some(work) = self.workers[at].at_work.get_mut(&who) {
            change(work);
        }
    }

    /// Asks for the proof. It may have been asked for already.
    fn stop(&mut self, at: usize, who: (Attempt, Hold)) {
        self.change(at, who, |work| {
            let asked = match &mut work.task {
                Task::Engine { stopping: asked, .. }
                | Task::Offer {
                    withdrawing: asked, ..
                }
                | Task::Read { cancelled: asked, .. } => asked,
            };
            *asked = true;
        });
    }

    fn tell(&mut self, at: usize, attempt: Attempt, message: ToOwner) {
        if message == ToOwner::Closed {
            self.proves(at, attempt);
        }
        let report = heard(message);
        let node = self.workers[at].node;
        self.answer(at, ToGateway::Report(node, attempt, report));
    }

    /// What is said to be returned, nobody touches.
    fn proves(&mut self, at: usize, attempt: Attempt) {
        if self.workers[at].at_work.keys().any(|(busy, _)| *busy == attempt) {
            self.breaks(Law::ForeignByte);
        }
    }

    fn answer(&mut self, at: usize, message: ToGateway) {
        if self.workers[at].link == Link::Up {
            self.workers[at].to_owner.push(message);
        }
    }

    /// One step of the engine: writes what has no KV yet, reads all of it, and samples a token.
    pub(super) fn engine_steps(&mut self, setup: &Setup, at: usize, attempt: Attempt) {
        let who = (attempt, Hold::Engine);
        let Some(mut work) = self.workers[at].at_work.remove(&who) else {
            return;
        };
        let Task::Engine {
            tokens,
            computed,
            first_only,
            waits,
            ..
        } = &mut work.task
        else {
            return;
        };
        if *tokens > u32::try_from(work.blocks.len()).unwrap() * BLOCK_TOKENS {
            *waits = true;
            self.workers[at].at_work.insert(who, work);
            return self.engine_says(setup, at, attempt, EngineInput::NeedBlocks { n: 1 });
        }
        let before = computed.div_ceil(BLOCK_TOKENS);
        let end = tokens.div_ceil(BLOCK_TOKENS);
        *computed = *tokens;
        *tokens += 1;
        work.done = *computed / BLOCK_TOKENS;
        let is_whole = *tokens >= PROMPT + setup.answer;
        let leaves = *first_only || is_whole;
        for (place, block) in (0..end).zip(&work.blocks) {
            let expected = setup.expected(attempt, place);
            let content = &mut self.workers[at].content[block.0 as usize];
            if place < before && *content != Some(expected) {
                self.broken = Some(Law::ForeignByte);
            } else {
                *content = Some(expected);
            }
        }
        if !leaves {
            self.workers[at].at_work.insert(who, work);
        }
        let event = EngineInput::Sampled {
            count: 1,
            finish: is_whole.then_some(Finish::Length),
        };
        self.engine_says(setup, at, attempt, event);
    }

    pub(super) fn engine_stops(&mut self, setup: &Setup, at: usize, attempt: Attempt) {
        self.workers[at].at_work.remove(&(attempt, Hold::Engine));
        self.engine_says(setup, at, attempt, EngineInput::Stopped);
    }

    fn engine_says(&mut self, setup: &Setup, at: usize, attempt: Attempt, event: EngineInput) {
        let input = HostInput::Engine { attempt, event };
        self.tell_host(setup, at, Context::default(), Some(input));
    }

    /// The transfer reports. What is over is so in truth before that is said.
    pub(super) fn transfer_says(&mut self, setup: &Setup, at: usize, attempt: Attempt, event: TransferInput) {
        let who = match event {
            TransferInput::Offered => None,
            TransferInput::Withdrawn => Some((attempt, Hold::Offer)),
            TransferInput::ReadEnded { .. } => Some((attempt, Hold::Read)),
        };
        match who {
            Some(who) => drop(self.workers[at].at_work.remove(&who)),
            None => self.change(at, (attempt, Hold::Offer), |work| {
                if let Task::Offer { offered, .. } = &mut work.task {
                    *offered = true;
                }
            }),
        }
        let input = HostInput::Transfer { attempt, event };
        self.tell_host(setup, at, Context::default(), Some(input));
    }

    /// The source reads its blocks for a reader at `at`: they must be those of that attempt.
    pub(super) fn bytes_leave(&mut self, setup: &Setup, at: usize, attempt: Attempt) {
        let Some(source) = self.source_of(attempt) else {
            return;
        };
        let reader = self.workers[at].at_work.get(&(attempt, Hold::Read)).cloned();
        let Some((reader, first)) = reader.and_then(|reader| match reader.task {
            Task::Read { from, .. } => Some((reader, from)),
            _ => None,
        }) else {
            return;
        };
        let source = &self.workers[source];
        let offered = &source.at_work[&(attempt, Hold::Offer)].blocks;
        let wanted = (first..).take(reader.blocks.len());
        let right = wanted.into_iter().all(|place| {
            let block = offered.get(place as usize);
            block
                .is_some_and(|block| source.content[block.0 as usize] == Some(setup.expected(attempt, place)))
        });
        if !right {
            self.breaks(Law::ForeignByte);
        }
        self.stage(at, attempt, Stage::UnderWay);
    }

    /// They are in the reader's blocks, whoever has those now.
    pub(super) fn bytes_land(&mut self, setup: &Setup, at: usize, attempt: Attempt) {
        let worker = &mut self.workers[at];
        if let Some(AtWork {
            blocks,
            task: Task::Read { from, .. },
            ..
        }) = worker.at_work.get(&(attempt, Hold::Read))
        {
            for (place, block) in (*from..).zip(blocks) {
                worker.content[block.0 as usize] = Some(setup.expected(attempt, place));
            }
        }
        self.stage(at, attempt, Stage::Landed);
    }

    fn stage(&mut self, at: usize, attempt: Attempt, next: Stage) {
        self.change(at, (attempt, Hold::Read), |work| {
            if let Task::Read { stage, .. } = &mut work.task {
                *stage = next;
            }
        });
    }

    /// Notes which generations were here, and forgets what nobody may read.
    fn tidy(&mut self, setup: &Setup, at: usize) {
        let worker = &mut self.workers[at];
        let stays: Vec<Attempt> = worker.host.stays().map(|stay| stay.attempt).collect();
        let mut had = BTreeSet::new();
        for attempt in stays {
            had.extend(
                worker
                    .host
                    .ledger()
                    .blocks(attempt)
                    .iter()
                    .map(|block| block.0 as usize),
            );
            let newest = worker.newest.entry(attempt.room).or_insert(attempt.generation);
            *newest = attempt.generation.max(*newest);
        }
        for (block, content) in worker.content.iter_mut().enumerate() {
            let cached = setup.shares && matches!(content, Some(Content::Named(_)));
            if !cached && !had.contains(&block) {
                *content = None;
            }
        }
    }
}

impl Task {
    fn engine(tokens: u32, computed: u32, first_only: bool, until: u32) -> Self {
        Self::Engine {
            tokens,
            computed,
            first_only,
            stopping: false,
            waits: false,
            until,
        }
    }
}
