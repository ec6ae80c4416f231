//! The links: one queue each way, whose order only a fault breaks; and the heartbeat with its digest.

use room::{Attempt, FromOwner, HostInput, Job, Order, Report, StayPhase, Work};

use super::laws::Law;
use super::setup::Setup;
use super::state::{Link, State, ToGateway, ToHost, UNIT, Worker};
use super::worker::Context;
use crate::room_kit::GATEWAY;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Way {
    ToHost,
    ToOwner,
}

impl Way {
    pub(super) const BOTH: [Self; 2] = [Self::ToHost, Self::ToOwner];

    /// How many messages wait, and whether each of the first two is a digest or the answer to one.
    pub(super) fn waiting(self, worker: &Worker) -> (usize, (bool, bool)) {
        let to_host = |n: usize| matches!(worker.to_host.get(n), Some(ToHost::Digest { .. }));
        let to_owner = |n: usize| matches!(worker.to_owner.get(n), Some(ToGateway::Held(..)));
        match self {
            Self::ToHost => (worker.to_host.len(), (to_host(0), to_host(1))),
            Self::ToOwner => (worker.to_owner.len(), (to_owner(0), to_owner(1))),
        }
    }
}

impl State {
    /// Delivers the `nth` message; with `again` it comes once more, behind all others.
    pub(super) fn deliver(&mut self, setup: &Setup, way: Way, at: usize, nth: usize, again: bool) {
        let worker = &mut self.workers[at];
        match way {
            Way::ToHost => {
                let sent = worker.to_host.remove(nth);
                if again {
                    worker.to_host.push(sent.clone());
                }
                self.host_hears(setup, at, sent);
            }
            Way::ToOwner => {
                let sent = worker.to_owner.remove(nth);
                if again {
                    worker.to_owner.push(sent.clone());
                }
                self.owner_hears(setup, sent);
            }
        }
    }

    pub(super) fn lose(&mut self, way: Way, at: usize) {
        let worker = &mut self.workers[at];
        match way {
            Way::ToHost => drop(worker.to_host.remove(0)),
            Way::ToOwner => drop(worker.to_owner.remove(0)),
        }
    }

    fn host_hears(&mut self, setup: &Setup, at: usize, message: ToHost) {
        match message {
            ToHost::Order(attempt, order) => {
                let tokens = match order {
                    Order::Reserve(work) | Order::Prefill { work, .. } => work.positions,
                    Order::Pull { .. } | Order::Allow { .. } | Order::Release | Order::Close => 0,
                };
                let message = from_owner(setup, order);
                self.order(setup, at, attempt, message, Context { tokens, asked: &[] });
            }
            ToHost::Digest { open, asked } => {
                let input = HostInput::Digest {
                    gateway: GATEWAY,
                    n: 0,
                    open,
                };
                let context = Context {
                    tokens: 0,
                    asked: &asked,
                };
                self.tell_host(setup, at, context, Some(input));
            }
        }
    }

    fn owner_hears(&mut self, setup: &Setup, message: ToGateway) {
        match message {
            ToGateway::Report(node, attempt, report) => self.report(setup, node, attempt, report),
            ToGateway::Held(node, held, asked) => {
                for attempt in asked {
                    let report = if held.contains(&attempt) {
                        Report::Held
                    } else {
                        Report::NotHeld
                    };
                    self.report(setup, node, attempt, report);
                }
            }
        }
    }

    /// The clock moves, at a cost if anything waits to be done. With it goes a heartbeat to everyone who may hold anything.
    pub(super) fn tick(&mut self, setup: &Setup) {
        self.left.slow -= u8::from(self.is_busy());
        self.now = self.now + UNIT;
        if setup.loses_digests {
            return;
        }
        for at in 0..self.workers.len() {
            let (asked, open) = self.legs_at(self.workers[at].node);
            let worker = &mut self.workers[at];
            let answered = !worker
                .to_host
                .iter()
                .any(|sent| matches!(sent, ToHost::Digest { .. }));
            let matters = !asked.is_empty() || worker.host.stays().next().is_some();
            if worker.link == Link::Up && answered && matters {
                worker.to_host.push(ToHost::Digest { open, asked });
            }
        }
    }

    /// Nothing gets through any more, either way; what is with the owner already may still be read.
    pub(super) fn cut(&mut self, at: usize) {
        let worker = &mut self.workers[at];
        if worker.link == Link::Up {
            worker.to_host.clear();
            worker.link = Link::Down {
                owner_knows: false,
                host_knows: false,
                dead: false,
            };
        }
    }

    /// The process ends, with all that it was doing.
    pub(super) fn crash(&mut self, setup: &Setup, at: usize) {
        let node = self.workers[at].node;
        let to_owner = std::mem::take(&mut self.workers[at].to_owner);
        self.workers[at] = Worker::new(node, setup, at);
        self.workers[at].to_owner = to_owner;
        self.workers[at].link = Link::Down {
            owner_knows: false,
            host_knows: true,
            dead: true,
        };
    }

    pub(super) fn owner_sees_link_end(&mut self, setup: &Setup, at: usize) {
        if let Link::Down { owner_knows, .. } = &mut self.workers[at].link {
            *owner_knows = true;
        }
        self.owner_loses(setup, self.workers[at].node);
    }

    pub(super) fn host_sees_link_end(&mut self, setup: &Setup, at: usize) {
        if let Link::Down { host_knows, .. } = &mut self.workers[at].link {
            *host_knows = true;
        }
        let input = HostInput::GatewayLost { gateway: GATEWAY };
        self.tell_host(setup, at, Context::default(), Some(input));
        let open = |stay: room::StayView| stay.phase != StayPhase::Closing;
        if self.workers[at].host.stays().any(open) {
            self.breaks(Law::Lease);
        }
    }

    pub(super) fn link_up(&mut self, at: usize) {
        let worker = &mut self.workers[at];
        if let Link::Down { dead: true, .. } = worker.link {
            worker.node.0 += 1;
        }
        worker.link = Link::Up;
    }

    /// An order of an attempt that has gone, or is going, changes nothing; but one that is to go may be told so again.
    fn order(
        &mut self,
        setup: &Setup,
        at: usize,
        attempt: Attempt,
        message: FromOwner,
        context: Context<'_>,
    ) {
        let worker = &self.workers[at];
        let key = worker.host.key();
        let newest = worker.newest.get(&attempt.room).copied();
        let is_over = match worker.host.stay(attempt).map(|stay| stay.phase) {
            None => newest.is_some_and(|newest| attempt.generation <= newest),
            Some(StayPhase::Closing) => !matches!(message, FromOwner::Close | FromOwner::Release),
            Some(_) => false,
        };
        let input = HostInput::Owner { attempt, message };
        self.tell_host(setup, at, context, Some(input));
        if is_over && self.workers[at].host.key() != key {
            self.breaks(Law::Stale);
        }
    }
}

/// All prompts are one text, where they may be shared.
fn from_owner(setup: &Setup, order: Order) -> FromOwner {
    let job = |work: Work| Job {
        positions: work.positions,
        max_positions: work.max_positions,
        delivered: work.delivered,
        until: work.until,
        hashes: setup.names(work.positions - work.delivered),
        deadline: work.deadline,
    };
    match order {
        Order::Reserve(work) => FromOwner::Reserve(job(work)),
        Order::Prefill { work, .. } => FromOwner::Prefill(job(work)),
        Order::Pull { .. } => FromOwner::Pull { sampled: 1 },
        Order::Allow { until } => FromOwner::Allow { until },
        Order::Release => FromOwner::Release,
        Order::Close => FromOwner::Close,
    }
}
