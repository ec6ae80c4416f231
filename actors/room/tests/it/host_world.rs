//! A pretend engine and transfer around a host, with their own record of who touches which block. It believes nothing of
//! what the ledger says, and fails the moment a block is handed to somebody while another may write it (INV-01).

use std::collections::{BTreeMap, BTreeSet};

use room::{
    Attempt, BlockId, EngineInput, Finish, FromOwner, Hold, Host, HostCommand, HostInput, Kept, NodeId, Span,
    Time, ToOwner, TransferInput,
};

use crate::host_kit::{BLOCK_TOKENS, at, spec};

/// Somebody at work on an attempt's blocks: the first `done` blocks are only read, the others may be written.
#[derive(Clone, Debug)]
struct Toucher {
    blocks: Vec<BlockId>,
    done: usize,
}

impl Toucher {
    fn written(&self) -> BTreeSet<BlockId> {
        self.blocks.iter().skip(self.done).copied().collect()
    }

    fn touched(&self) -> BTreeSet<BlockId> {
        self.blocks.iter().copied().collect()
    }
}

pub(crate) struct World {
    pub(crate) host: Host,
    now: Time,
    at_work: BTreeMap<(Attempt, Hold), Toucher>,
    /// Sequences that leave the engine with their first token.
    first_only: BTreeSet<Attempt>,
    /// Positions that each stay began with.
    prompts: BTreeMap<Attempt, u32>,
    /// Index of the next token each owner expects, once it has seen one.
    expected: BTreeMap<Attempt, u32>,
    ended: BTreeSet<Attempt>,
}

/// One thing that may happen next, if it can.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Owner(Attempt, FromOwner),
    Digest(NodeId, Vec<Kept>),
    GatewayLost(NodeId),
    /// The engine reports about this sequence, if it has it.
    Engine(Attempt, EngineInput),
    /// The transfer reports about these blocks, if it has them.
    Transfer(Attempt, TransferInput),
    /// A report that nothing led to.
    Stray(Attempt, EngineInput),
    EngineDown,
    Drain,
    Undrain,
    Pass(u64),
}

impl World {
    pub(crate) fn new(mixed: bool) -> Self {
        Self {
            host: Host::new(spec(mixed)),
            now: at(0),
            at_work: BTreeMap::new(),
            first_only: BTreeSet::new(),
            prompts: BTreeMap::new(),
            expected: BTreeMap::new(),
            ended: BTreeSet::new(),
        }
    }

    pub(crate) fn run(&mut self, op: Op) {
        match op {
            Op::Owner(attempt, message) => {
                let absent = self.host.stay(attempt).is_none();
                if let (true, FromOwner::Reserve(job) | FromOwner::Prefill(job)) = (absent, &message) {
                    self.prompts.insert(attempt, job.positions);
                }
                self.feed(HostInput::Owner { attempt, message });
            }
            Op::Digest(gateway, open) => self.feed(HostInput::Digest { gateway, n: 1, open }),
            Op::GatewayLost(gateway) => self.feed(HostInput::GatewayLost { gateway }),
            Op::Engine(attempt, event) => self.engine(attempt, event),
            Op::Transfer(attempt, event) => self.transfer(attempt, event),
            Op::Stray(attempt, event) => {
                if !self.at_work.contains_key(&(attempt, Hold::Engine)) {
                    self.feed(HostInput::Engine { attempt, event });
                }
            }
            Op::EngineDown => {
                self.at_work.retain(|(_, hold), _| *hold != Hold::Engine);
                self.feed(HostInput::EngineDown);
            }
            Op::Drain => self.feed(HostInput::Drain),
            Op::Undrain => self.feed(HostInput::Undrain),
            Op::Pass(millis) => {
                self.now = self.now + Span::from_millis(millis);
                self.host.handle_timeout(self.now);
                self.perform();
            }
        }
        self.check();
    }

    fn engine(&mut self, attempt: Attempt, event: EngineInput) {
        let Some(toucher) = self.at_work.get_mut(&(attempt, Hold::Engine)) else {
            return;
        };
        let first_only = self.first_only.contains(&attempt);
        match event {
            EngineInput::Computed { positions } => {
                let end = toucher.done.max((positions / BLOCK_TOKENS) as usize);
                toucher.done = end.min(toucher.blocks.len());
            }
            EngineInput::Sampled { finish, .. } if first_only || finish.is_some() => {
                self.at_work.remove(&(attempt, Hold::Engine));
            }
            EngineInput::Stopped | EngineInput::NoToken => {
                drop(self.at_work.remove(&(attempt, Hold::Engine)));
            }
            // A sampled token says that all before it are computed: a prompt's blocks are written no more.
            EngineInput::Sampled { .. } => {
                let prompt = self.prompts.get(&attempt).copied().unwrap_or(0) / BLOCK_TOKENS;
                toucher.done = toucher.done.max(prompt as usize);
            }
            EngineInput::NeedBlocks { .. } => {}
        }
        self.feed(HostInput::Engine { attempt, event });
    }

    fn transfer(&mut self, attempt: Attempt, event: TransferInput) {
        let hold = match event {
            TransferInput::ReadEnded { .. } => Hold::Read,
            TransferInput::Offered | TransferInput::Withdrawn => Hold::Offer,
        };
        if !self.at_work.contains_key(&(attempt, hold)) {
            return;
        }
        if event != TransferInput::Offered {
            self.at_work.remove(&(attempt, hold));
        }
        self.feed(HostInput::Transfer { attempt, event });
    }

    fn feed(&mut self, input: HostInput) {
        self.host.handle_input(self.now, input);
        self.perform();
    }

    fn perform(&mut self) {
        while let Some(command) = self.host.poll_command() {
            match command {
                HostCommand::StartPrefill {
                    attempt,
                    blocks,
                    computed,
                    whole,
                    ..
                } => {
                    if !whole {
                        self.first_only.insert(attempt);
                    }
                    self.start(attempt, Hold::Engine, blocks, computed / BLOCK_TOKENS);
                }
                HostCommand::StartDecode {
                    attempt,
                    blocks,
                    computed,
                    ..
                } => {
                    self.first_only.remove(&attempt);
                    self.start(attempt, Hold::Engine, blocks, computed / BLOCK_TOKENS);
                }
                HostCommand::Allow { attempt, .. } => {
                    assert!(
                        self.at_work.contains_key(&(attempt, Hold::Engine)),
                        "allowed nobody"
                    );
                }
                HostCommand::Grow { attempt, blocks } => {
                    self.refuse_touched(attempt, &blocks.iter().copied().collect(), &BTreeSet::new());
                    if let Some(toucher) = self.at_work.get_mut(&(attempt, Hold::Engine)) {
                        toucher.blocks.extend(blocks);
                    }
                }
                HostCommand::Offer { attempt, blocks } => {
                    let all = u32::try_from(blocks.len()).unwrap();
                    self.start(attempt, Hold::Offer, blocks, all);
                }
                HostCommand::Read { attempt, into, .. } => self.start(attempt, Hold::Read, into, 0),
                HostCommand::Tell { attempt, message } => self.hear(attempt, message),
                HostCommand::AnswerDigest { .. }
                | HostCommand::StopEngine { .. }
                | HostCommand::Withdraw { .. }
                | HostCommand::CancelRead { .. } => {}
            }
        }
    }

    fn start(&mut self, attempt: Attempt, hold: Hold, blocks: Vec<BlockId>, done: u32) {
        let new = Toucher {
            blocks,
            done: done as usize,
        };
        self.refuse_touched(attempt, &new.written(), &new.touched());
        assert!(
            self.at_work.insert((attempt, hold), new).is_none(),
            "{attempt} started twice: {hold:?}"
        );
    }

    /// What is newly written must be touched by nobody else, and what is newly read must be written by nobody else.
    fn refuse_touched(&self, attempt: Attempt, written: &BTreeSet<BlockId>, touched: &BTreeSet<BlockId>) {
        for ((other, hold), toucher) in self.at_work.iter().filter(|((other, _), _)| *other != attempt) {
            assert!(
                written.is_disjoint(&toucher.touched()),
                "{attempt} writes what {other} touches ({hold:?})"
            );
            assert!(
                touched.is_disjoint(&toucher.written()),
                "{attempt} reads what {other} writes ({hold:?})"
            );
        }
    }

    /// Owners hear an unbroken run of tokens, and nothing but `Closed` once they heard the end.
    fn hear(&mut self, attempt: Attempt, message: ToOwner) {
        match message {
            ToOwner::Closed => {
                let busy = self.at_work.keys().any(|(other, _)| *other == attempt);
                assert!(!busy, "{attempt} is closed while somebody touches its blocks");
                return;
            }
            ToOwner::Refused(_) => {
                assert!(self.host.stay(attempt).is_none(), "{attempt} is refused and here");
                return;
            }
            ToOwner::Failed(room::AttemptError::UnknownAttempt) => return,
            ToOwner::Tokens { from, count } => {
                let expected = self.expected.entry(attempt).or_insert(from);
                assert_eq!(*expected, from, "{attempt}: tokens are repeated or skipped");
                *expected += count;
            }
            ToOwner::Finished { answered, .. } => {
                assert_eq!(
                    self.expected.get(&attempt),
                    Some(&answered),
                    "{attempt}: a wrong total"
                );
            }
            _ => {}
        }
        assert!(
            !self.ended.contains(&attempt),
            "{attempt} has ended, and then: {message:?}"
        );
        if let ToOwner::Finished { .. } | ToOwner::Failed(_) = message {
            self.ended.insert(attempt);
        }
    }

    fn check(&self) {
        assert!(
            self.host.occupancy().adds_up(),
            "INV-02: {:?}",
            self.host.occupancy()
        );
        self.host.ledger().audit().unwrap();
        for ((attempt, hold), toucher) in &self.at_work {
            let stay = self.host.stay(*attempt);
            assert!(
                stay.is_some_and(|stay| stay.waits_for.has(*hold)),
                "{attempt}: {hold:?} is forgotten"
            );
            let leased: BTreeSet<_> = self.host.ledger().blocks(*attempt).iter().copied().collect();
            assert!(
                leased.is_superset(&toucher.touched()),
                "{attempt}: {hold:?} touches what it does not have"
            );
        }
        let held: usize = self.host.stays().map(|stay| stay.waits_for.iter().count()).sum();
        assert_eq!(held, self.at_work.len(), "a hold that nobody has");
        assert_eq!(
            self.host.poll_timeout().is_some(),
            self.host.stays().next().is_some(),
            "a stay without a deadline"
        );
        assert!(
            self.host.slots_used() <= self.host.spec().slots,
            "INV-09: more slots than there are"
        );
        assert!(
            self.host.prefill_backlog() <= 1_000,
            "backlog of what is not here"
        );
    }

    /// Every owner closes everything, and then every proof comes.
    pub(crate) fn close_all(&mut self, gateways: &[NodeId]) {
        for gateway in gateways {
            self.run(Op::Digest(*gateway, Vec::new()));
        }
        let owed: Vec<_> = self.at_work.keys().copied().collect();
        for (attempt, hold) in owed {
            self.run(match hold {
                Hold::Engine => Op::Engine(attempt, EngineInput::Stopped),
                Hold::Read => Op::Transfer(attempt, TransferInput::ReadEnded { ok: true }),
                Hold::Offer => Op::Transfer(attempt, TransferInput::Withdrawn),
            });
        }
    }

    /// Nothing happens but the passing of time: every stay that needs no proof ends, and those that do go on asking.
    pub(crate) fn wait(&mut self) {
        for _ in 0..10_000 {
            match self.host.poll_timeout() {
                Some(deadline)
                    if self
                        .host
                        .stays()
                        .any(|stay| stay.phase != room::StayPhase::Closing) =>
                {
                    let millis = (deadline - self.now).as_millis() + 1;
                    self.run(Op::Pass(millis));
                }
                _ => return,
            }
        }
        panic!(
            "stays that no deadline ends: {:?}",
            self.host.stays().collect::<Vec<_>>()
        );
    }
}

pub(crate) fn finish(is: bool) -> Option<Finish> {
    is.then_some(Finish::Length)
}
