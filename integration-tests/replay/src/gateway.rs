//! The gateway: the real rooms of all requests, and the real desk.

use std::collections::VecDeque;

use room::{
    Attempt, Bid, Command, Desk, FromOwner, Hints, Input, Job, NodeId, Order, Report, Room, RoomId, RoomSpec,
    Span, Taken, Time, ToOwner, Verdict, Work, WorkerSpec,
};

use crate::report::Record;
use crate::setup::Setup;
use crate::trace::Request;
use crate::worker::Frame;

/// The one gateway's name.
pub(crate) const GATEWAY: NodeId = NodeId(1);

/// No request ends by its own deadline here.
const DEADLINE: Span = Span::from_millis(3_600_000);

/// An order to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) to: NodeId,
    pub(crate) attempt: Attempt,
    pub(crate) message: FromOwner,
    pub(crate) source: Option<NodeId>,
}

struct Open {
    room: Room,
    /// For when it is in the world's heap.
    armed: Option<Time>,
    /// Tokens delivered by the current attempt's prefill.
    sampled: u32,
}

/// Rooms and desk.
pub(crate) struct Gateway<'a> {
    setup: &'a Setup,
    requests: &'a [Request],
    desk: Desk,
    /// By the request's place in the trace.
    open: Vec<Option<Open>>,
    /// Rooms with commands to take.
    stirred: VecDeque<usize>,
    pub(crate) records: Vec<Record>,
    pub(crate) sent: Vec<Sent>,
    /// Rooms to be woken.
    pub(crate) alarms: Vec<(Time, usize)>,
    /// Workers to be asked for all that their caches have.
    pub(crate) to_list: Vec<NodeId>,
    pub(crate) retries: u64,
    pub(crate) gaps: u64,
    pub(crate) ended: usize,
}

impl<'a> Gateway<'a> {
    pub(crate) fn new(setup: &'a Setup, requests: &'a [Request]) -> Self {
        let start = Time::default();
        let desk = match setup.policy.policy(setup.weights) {
            Some(policy) => Desk::with_policy(setup.desk_limits(), policy, start),
            None => Desk::new(setup.desk_limits(), start),
        };
        let arrival = |r: &Request| Record::new(Time { micros: r.arrival_us });
        Self {
            setup,
            requests,
            desk,
            open: requests.iter().map(|_| None).collect(),
            stirred: VecDeque::new(),
            records: requests.iter().map(arrival).collect(),
            sent: Vec::new(),
            alarms: Vec::new(),
            to_list: Vec::new(),
            retries: 0,
            gaps: 0,
            ended: 0,
        }
    }

    pub(crate) fn worker_up(&mut self, node: NodeId, spec: WorkerSpec) {
        self.desk.worker_up(Time::default(), node, spec);
    }

    /// A request comes.
    pub(crate) fn arrive(&mut self, now: Time, at: usize) {
        let request = &self.requests[at];
        let id = RoomId {
            gateway: GATEWAY,
            seq: at as u64,
        };
        let spec = RoomSpec {
            positions: request.prompt,
            max_new: request.answer,
            deadline: now + DEADLINE,
            priority: room::Priority(0),
            share: room::Share::default(),
        };
        self.open[at] = Some(Open {
            room: Room::new(id, spec, &self.setup.limits(), now),
            armed: None,
            sampled: 0,
        });
        self.stirred.push_back(at);
        self.settle(now);
    }

    /// What a worker tells.
    pub(crate) fn frame(&mut self, now: Time, from: NodeId, frame: Frame) {
        for change in frame.changes {
            if self.desk.cache_changed(from, change) == Taken::Gap {
                self.gaps += 1;
                self.to_list.push(from);
            }
        }
        if let Some((advert, pace)) = frame.beat {
            self.desk.advertise(now, from, advert);
            self.desk.paced(from, pace);
        }
        for (attempt, message) in frame.told {
            self.told(now, from, attempt, message);
        }
        self.settle(now);
    }

    /// All that a worker's cache has.
    pub(crate) fn listed(&mut self, from: NodeId, next: u64, hashes: &[room::BlockHash]) {
        self.desk.cache_listed(from, next, hashes);
    }

    /// A room wanted to be woken now.
    pub(crate) fn alarm(&mut self, now: Time, at: usize) {
        let Some(open) = &mut self.open[at] else { return };
        open.armed = None;
        if open.room.poll_timeout().is_some_and(|due| due <= now) {
            open.room.handle_timeout(now);
        }
        self.stirred.push_back(at);
        self.settle(now);
    }

    fn told(&mut self, now: Time, worker: NodeId, attempt: Attempt, message: ToOwner) {
        let Some((at, open)) =
            index(attempt.room).and_then(|at| Some((at, self.open.get_mut(at)?.as_mut()?)))
        else {
            return;
        };
        if let ToOwner::Tokens { count, .. } = message {
            open.sampled += count;
        }
        self.retries += u64::from(matches!(message, ToOwner::Failed(_) | ToOwner::Refused(_)));
        let input = Input::FromWorker {
            worker,
            generation: attempt.generation,
            report: report(message),
        };
        open.room.handle_input(now, input);
        self.stirred.push_back(at);
    }

    /// Carries out what rooms command and tells them what the desk says, until neither has anything left.
    fn settle(&mut self, now: Time) {
        loop {
            if let Some(at) = self.stirred.pop_front() {
                self.perform(now, at);
            } else if let Some(verdict) = self.desk.poll_verdict(now) {
                self.verdict(now, verdict);
            } else {
                return;
            }
        }
    }

    fn verdict(&mut self, now: Time, verdict: Verdict) {
        let (attempt, input) = match verdict {
            Verdict::Granted { attempt, route } => {
                let generation = attempt.generation;
                (attempt, Input::Admitted { generation, route })
            }
            Verdict::Refused { attempt, failure } => {
                let generation = attempt.generation;
                (attempt, Input::NotAdmitted { generation, failure })
            }
        };
        let Some(at) = index(attempt.room) else { return };
        if let Some(open) = &mut self.open[at] {
            open.room.handle_input(now, input);
            self.stirred.push_back(at);
        }
    }

    fn perform(&mut self, now: Time, at: usize) {
        loop {
            let Some(open) = &mut self.open[at] else { return };
            while open.room.poll_event().is_some() {}
            let Some(command) = open.room.poll_command() else {
                break;
            };
            match command {
                Command::Enqueue(bid) => self.enqueue(now, at, bid),
                Command::LeaveQueue { attempt } => self.desk.leave(attempt),
                Command::GiveBack {
                    attempt,
                    worker,
                    credit,
                } => self.desk.give_back(attempt, worker, credit),
                Command::Send { to, attempt, order } => self.send(at, to, attempt, order),
                Command::Deliver { take, .. } => self.records[at].delivered(now, take),
                Command::Answer(outcome) => self.records[at].outcome = Some(outcome),
                // Only a worker that is silent is fenced, and none is.
                Command::Fence { .. } => {}
                Command::End => {
                    self.open[at] = None;
                    self.ended += 1;
                    return;
                }
            }
        }
        self.arm(at);
    }

    fn enqueue(&mut self, now: Time, at: usize, bid: Bid) {
        let request = &self.requests[at];
        let by = Time {
            micros: request.arrival_us + self.setup.first_token_us,
        };
        let attempt = bid.attempt;
        let hints = Hints {
            hashes: request.hashes.clone(),
            first_token_by: (self.setup.policy.refuses() && !bid.begun).then_some(by),
        };
        let refused = self.desk.enqueue_with(bid, hints).err();
        if let Some(open) = &mut self.open[at] {
            open.sampled = 0;
            if let Some(failure) = refused {
                let generation = attempt.generation;
                open.room
                    .handle_input(now, Input::NotAdmitted { generation, failure });
            }
        }
    }

    fn send(&mut self, at: usize, to: NodeId, attempt: Attempt, order: Order) {
        let job = |work: Work| Job {
            positions: work.positions,
            max_positions: work.max_positions,
            delivered: work.delivered,
            until: work.until,
            hashes: self.requests[at].hashes.to_vec(),
            deadline: work.deadline,
        };
        let sampled = self.open[at].as_ref().map_or(0, |open| open.sampled);
        let (message, source) = match order {
            Order::Reserve(work) => (FromOwner::Reserve(job(work)), None),
            Order::Prefill { work, .. } => (FromOwner::Prefill(job(work)), None),
            Order::Pull { from } => (FromOwner::Pull { sampled }, Some(from)),
            Order::Allow { until } => (FromOwner::Allow { until }, None),
            Order::Release => (FromOwner::Release, None),
            Order::Close => (FromOwner::Close, None),
        };
        self.sent.push(Sent {
            to,
            attempt,
            message,
            source,
        });
    }

    /// One entry in the heap for a room, and none that is later than it wants; one that is earlier finds nothing to do.
    fn arm(&mut self, at: usize) {
        let Some(open) = &mut self.open[at] else { return };
        let Some(due) = open.room.poll_timeout() else {
            return;
        };
        if open.armed.is_none_or(|armed| due < armed) {
            open.armed = Some(due);
            self.alarms.push((due, at));
        }
    }
}

fn index(room: RoomId) -> Option<usize> {
    usize::try_from(room.seq).ok()
}

fn report(message: ToOwner) -> Report {
    match message {
        ToOwner::Reserved { cached_blocks } => Report::Reserved { cached_blocks },
        ToOwner::Refused(why) => Report::Refused(why),
        ToOwner::Progress { positions } => Report::Progress { positions },
        ToOwner::Tokens { from, count } => Report::Tokens { from, count },
        ToOwner::Published => Report::Published,
        ToOwner::Pulled => Report::Pulled,
        ToOwner::Finished { finish, answered } => Report::Finished {
            finish,
            total: answered,
        },
        ToOwner::Failed(error) => Report::Failed(error),
        ToOwner::Closed => Report::Closed,
    }
}
