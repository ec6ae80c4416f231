//! Rooms under arbitrary inputs, lost, repeated, late and false ones among them.
//!
//! A [`Watcher`] performs a room's commands on paper and holds it to its promises after every step. In the end all is
//! silent but the clock, and the room must come to its end by itself; only a fence is answered, as the caller must.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use room::{
    AbortBy, AttemptError, Command, Credit, Failure, Finish, Generation, Input, NodeId, Order, Outcome,
    PhaseKind, Refusal, Report, Room, Route, Span, Time, WaitsFor,
};

use crate::room_kit::{DECODE, PREFILL, SPEC, STRANGER, cases, ms, room_of};

/// Tokens of an answer that may be unread.
const UNREAD: u32 = 3;

const WORKERS: [NodeId; 4] = [PREFILL, DECODE, NodeId(21), STRANGER];

#[derive(Clone, Debug)]
enum Op {
    Admit {
        prefill: usize,
        decode: usize,
        back: u32,
    },
    NotAdmitted(Failure),
    /// Said of the generation so many ago.
    Report {
        worker: usize,
        back: u32,
        report: Report,
    },
    /// What a healthy worker would say next.
    GoOn,
    Lost(usize),
    /// The reader is said to have taken so many tokens.
    Read(u32),
    StopString,
    Abort,
    Pass(u64),
}

fn report() -> impl Strategy<Value = Report> {
    let refusal = prop_oneof![
        Just(Refusal::NoBlocks),
        Just(Refusal::TooLarge),
        Just(Refusal::Stale),
        Just(Refusal::OutOfOrder)
    ];
    let error = prop_oneof![
        Just(AttemptError::EngineFailed),
        Just(AttemptError::NoToken),
        Just(AttemptError::PullFailed),
        Just(AttemptError::Evicted)
    ];
    prop_oneof![
        2 => (0..8u32).prop_map(|cached_blocks| Report::Reserved { cached_blocks }),
        1 => refusal.prop_map(Report::Refused),
        2 => (0..200u32).prop_map(|positions| Report::Progress { positions }),
        6 => (0..9u32, 0..9u32).prop_map(|(from, count)| Report::Tokens { from, count }),
        2 => Just(Report::Published),
        2 => Just(Report::Pulled),
        1 => (0..9u32).prop_map(|total| Report::Finished { finish: Finish::Stop, total }),
        1 => error.prop_map(Report::Failed),
        2 => Just(Report::Closed),
        1 => Just(Report::NotHeld),
        1 => Just(Report::Held),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let worker = 0..WORKERS.len();
    prop_oneof![
        3 => (worker.clone(), worker.clone(), 0..2u32)
            .prop_map(|(prefill, decode, back)| Op::Admit { prefill, decode, back }),
        1 => prop_oneof![Just(Failure::NoWorker), Just(Failure::QueueFull)].prop_map(Op::NotAdmitted),
        6 => (worker.clone(), 0..3u32, report())
            .prop_map(|(worker, back, report)| Op::Report { worker, back, report }),
        20 => Just(Op::GoOn),
        1 => worker.prop_map(Op::Lost),
        2 => (0..9u32).prop_map(Op::Read),
        1 => Just(Op::StopString),
        1 => Just(Op::Abort),
        4 => (0..4_000u64).prop_map(Op::Pass),
    ]
}

/// What a room has done so far, and what it owes.
struct Watcher {
    room: Room,
    now: Time,
    answers: Vec<(Time, Outcome)>,
    ended: bool,
    delivered: u32,
    generation: Generation,
    /// Leases that may exist: an order was sent and no proof came.
    open: BTreeSet<(NodeId, Generation)>,
    /// Credit that was granted and has not come back.
    credit: BTreeSet<(NodeId, Generation)>,
    /// What the reader has taken, and how far the current attempt was allowed to go.
    read: u32,
    allowed: u32,
    /// The last order to each worker.
    orders: BTreeMap<NodeId, Order>,
}

impl Watcher {
    fn new() -> Self {
        let mut watcher = Self {
            room: room_of(UNREAD),
            now: ms(0),
            answers: Vec::new(),
            ended: false,
            delivered: 0,
            generation: Generation::FIRST,
            open: BTreeSet::new(),
            credit: BTreeSet::new(),
            read: 0,
            allowed: 0,
            orders: BTreeMap::new(),
        };
        watcher.settle(None);
        watcher
    }

    fn apply(&mut self, op: &Op) {
        let generation = |back: u32| Generation(self.room.generation().0.saturating_sub(back));
        let input = match *op {
            Op::Admit {
                prefill,
                decode,
                back,
            } => {
                let route = Route {
                    prefill: WORKERS[prefill],
                    decode: WORKERS[decode],
                };
                Input::Admitted {
                    generation: generation(back),
                    route,
                }
            }
            Op::NotAdmitted(failure) => Input::NotAdmitted {
                generation: generation(0),
                failure,
            },
            Op::Report { worker, back, report } => Input::FromWorker {
                worker: WORKERS[worker],
                generation: generation(back),
                report,
            },
            Op::GoOn => match self.next_step() {
                Some(input) => input,
                None => return,
            },
            Op::Lost(worker) => Input::WorkerLost {
                worker: WORKERS[worker],
            },
            Op::Read(tokens) => Input::Read { tokens },
            Op::StopString => Input::StopStringFound,
            Op::Abort => Input::Abort(AbortBy::ClientGone),
            Op::Pass(millis) => return self.pass(Span::from_millis(millis)),
        };
        self.input(input);
    }

    /// What a healthy desk or worker says to the room as it is.
    fn next_step(&self) -> Option<Input> {
        let generation = self.room.generation();
        let next = self.room.delivered();
        let speaks = |worker, report| Input::FromWorker {
            worker,
            generation,
            report,
        };
        match self.room.waits_for() {
            WaitsFor::Credit => Some(Input::Admitted {
                generation,
                route: Route {
                    prefill: PREFILL,
                    decode: DECODE,
                },
            }),
            WaitsFor::Grant { worker } => Some(speaks(worker, Report::Reserved { cached_blocks: 0 })),
            WaitsFor::Prompt { worker, .. } if next.is_multiple_of(2) => {
                Some(speaks(worker, Report::Tokens { from: next, count: 1 }))
            }
            WaitsFor::Prompt { worker, .. } => Some(speaks(worker, Report::Published)),
            WaitsFor::Kv { to, .. } => Some(speaks(to, Report::Pulled)),
            WaitsFor::Token { worker } if next == SPEC.max_new => Some(speaks(
                worker,
                Report::Finished {
                    finish: Finish::Length,
                    total: next,
                },
            )),
            WaitsFor::Token { worker } => Some(speaks(worker, Report::Tokens { from: next, count: 1 })),
            WaitsFor::Reader => Some(Input::Read { tokens: next }),
            WaitsFor::Proof { worker, .. } => {
                let leg = self.room.legs().into_iter().find(|leg| leg.worker == worker)?;
                Some(Input::FromWorker {
                    worker,
                    generation: leg.generation,
                    report: Report::Closed,
                })
            }
            WaitsFor::Pause { .. } | WaitsFor::Nothing => None,
        }
    }

    fn input(&mut self, input: Input) {
        let queued = self.room.waits_for() == WaitsFor::Credit;
        match input {
            Input::Admitted { generation, route } if queued && generation == self.room.generation() => {
                self.credit
                    .extend(route.workers().map(|worker| (worker, generation)));
            }
            Input::Read { tokens } => self.read = self.read.max(tokens.min(self.delivered)),
            Input::WorkerLost { worker } => self.open.retain(|(at, _)| *at != worker),
            Input::FromWorker {
                worker,
                generation,
                report,
            } if self.proves(worker, report) => {
                self.open.remove(&(worker, generation));
            }
            _ => {}
        }
        self.room.handle_input(self.now, input);
        self.settle(Some(input));
    }

    /// Whether there is no lease after this: a refusal says so only of the first order to that worker.
    fn proves(&self, worker: NodeId, report: Report) -> bool {
        let asked = match self.room.waits_for() {
            WaitsFor::Grant { worker } | WaitsFor::Prompt { worker, .. } => Some(worker),
            _ => None,
        };
        let first = !matches!(
            self.orders.get(&worker),
            Some(Order::Prefill {
                then_decode: true,
                ..
            })
        );
        match report {
            Report::Closed | Report::NotHeld => true,
            Report::Refused(why) => asked == Some(worker) && first && why != Refusal::OutOfOrder,
            _ => false,
        }
    }

    /// Lets time pass as the caller does: every timeout at its time.
    fn pass(&mut self, span: Span) {
        let until = self.now + span;
        while let Some(at) = self.room.poll_timeout().filter(|at| *at <= until) {
            self.now = at;
            self.room.handle_timeout(at);
            self.settle(None);
        }
        self.now = until;
    }

    /// Performs the commands, and checks what must hold.
    fn settle(&mut self, cause: Option<Input>) {
        let mut fences = BTreeSet::new();
        while let Some(command) = self.room.poll_command() {
            assert!(!self.ended, "after the end: {command:?}");
            match command {
                Command::Answer(outcome) => self.answers.push((self.now, outcome)),
                Command::End => {
                    assert!(self.open.is_empty(), "ended with leases out: {:?}", self.open);
                    assert!(self.credit.is_empty(), "ended with credit out: {:?}", self.credit);
                    self.ended = true;
                }
                Command::Send { to, attempt, order } => self.sent(to, attempt.generation, order),
                Command::Deliver { skip, take } => self.delivered_some(cause, skip, take),
                Command::GiveBack {
                    attempt,
                    worker,
                    credit: Credit::All,
                } => {
                    assert!(
                        self.credit.remove(&(worker, attempt.generation)),
                        "given back twice"
                    );
                }
                Command::Fence { worker } => {
                    fences.insert(worker);
                }
                Command::Enqueue(_) | Command::LeaveQueue { .. } | Command::GiveBack { .. } => {}
            }
        }
        self.check();
        for worker in fences {
            self.input(Input::WorkerLost { worker });
        }
    }

    fn sent(&mut self, to: NodeId, generation: Generation, order: Order) {
        self.allows(order);
        match order {
            Order::Reserve(_) | Order::Prefill { .. } => {
                assert!(self.answers.is_empty(), "work was started after the answer");
                assert!(self.credit.contains(&(to, generation)), "work before credit");
                self.open.insert((to, generation));
            }
            Order::Allow { .. } => {
                assert!(self.answers.is_empty(), "more was allowed after the answer");
                assert!(
                    self.open.contains(&(to, generation)),
                    "allowed where nothing is held"
                );
            }
            Order::Pull { .. } => assert!(self.open.contains(&(to, generation))),
            Order::Release | Order::Close => {}
        }
        self.orders.insert(to, order);
    }

    /// No more is allowed than what may be unread (and one token an attempt), and within an attempt it only grows.
    fn allows(&mut self, order: Order) {
        let until = match order {
            Order::Reserve(work) => {
                self.allowed = 0;
                work.until
            }
            Order::Prefill { work, .. } => work.until,
            Order::Allow { until } => {
                assert!(until > self.allowed, "allowed nothing new");
                until
            }
            Order::Pull { .. } | Order::Release | Order::Close => return,
        };
        assert!(
            until >= self.allowed && until > 0,
            "{until} after {}",
            self.allowed
        );
        assert!(until <= (self.read + UNREAD).max(self.delivered + 1));
        self.allowed = until;
    }

    /// Nothing is delivered twice, and nothing is left out (INV-06).
    fn delivered_some(&mut self, cause: Option<Input>, skip: u32, take: u32) {
        let Some(Input::FromWorker {
            report: Report::Tokens { from, count },
            ..
        }) = cause
        else {
            panic!("tokens out of nothing: {cause:?}");
        };
        assert_eq!(from + skip, self.delivered);
        assert!(take > 0 && skip + take <= count);
        self.delivered += take;
        assert!(self.delivered <= SPEC.max_new);
        assert!(self.answers.is_empty(), "tokens after the answer");
    }

    fn check(&mut self) {
        let room = &self.room;
        let ended = room.phase() == PhaseKind::Ended;
        assert_eq!(ended, self.ended);
        assert_eq!(ended, room.poll_timeout().is_none(), "who would wake it?");
        assert!(self.answers.len() <= 1, "{:?}", self.answers);
        assert_eq!(room.outcome(), self.answers.first().map(|(_, outcome)| *outcome));
        assert_eq!(room.phase().is_live(), room.outcome().is_none());
        assert_eq!(room.delivered(), self.delivered);
        assert!(room.generation() >= self.generation, "generations only grow");
        self.generation = room.generation();
        let known: BTreeSet<_> = room
            .legs()
            .iter()
            .map(|leg| (leg.worker, leg.generation))
            .collect();
        assert!(
            self.open.is_subset(&known),
            "forgotten leases: {:?} of {known:?}",
            self.open
        );
        let waits = room.waits_for() == WaitsFor::Reader;
        assert!(!waits || self.read < self.delivered, "nobody to wait for");
        let whole = matches!(room.outcome(), Some(Outcome::Completed(Finish::Length)));
        assert!(!whole || self.delivered > 0);
    }

    /// Silence for ever: the room ends by itself.
    fn silence(&mut self) {
        let mut woken = 0;
        while let Some(at) = self.room.poll_timeout() {
            assert!(at >= self.now || woken == 0, "woken for the past");
            self.now = self.now.max(at);
            self.room.handle_timeout(self.now);
            self.settle(None);
            woken += 1;
            assert!(woken < 1_000, "no end of it in {}", self.room.phase());
        }
        let (at, _) = self.answers[0];
        assert!(at <= SPEC.deadline, "answered late (INV-04)");
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn every_room_checks_out(ops in proptest::collection::vec(op(), 0..60)) {
        let mut watcher = Watcher::new();
        for op in &ops {
            watcher.apply(op);
        }
        watcher.silence();
        prop_assert!(watcher.ended);
        prop_assert_eq!(watcher.answers.len(), 1);
    }

    /// The same inputs give the same commands and events (INV-12).
    #[test]
    fn a_room_is_a_function_of_its_inputs(ops in proptest::collection::vec(op(), 0..40)) {
        let run = || {
            let mut watcher = Watcher::new();
            for op in &ops {
                watcher.apply(op);
            }
            watcher.silence();
            let events: Vec<_> = std::iter::from_fn(|| watcher.room.poll_event()).collect();
            (watcher.now, watcher.answers, events)
        };
        prop_assert_eq!(run(), run());
    }
}
