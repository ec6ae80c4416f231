//! The gateway: rooms, and what they want done.

use room::{Attempt, Command, Generation, Input, Kept, NodeId, Order, Outcome, PhaseKind, Report, Room};

use super::laws::Law;
use super::setup::Setup;
use super::state::{Link, State, ToHost};

/// What may not change by chance.
#[derive(PartialEq, Eq)]
struct Face {
    phase: PhaseKind,
    generation: Generation,
    delivered: u32,
    outcome: Option<Outcome>,
}

impl Face {
    fn of(room: &Room) -> Self {
        Self {
            phase: room.phase(),
            generation: room.generation(),
            delivered: room.delivered(),
            outcome: room.outcome(),
        }
    }
}

impl State {
    /// Gives a room an input, or its timeout, and does what it commands; whether it commanded anything.
    pub(super) fn tell_room(&mut self, setup: &Setup, guest: usize, input: Option<Input>) -> bool {
        let now = self.now;
        let room = &mut self.guests[guest].room;
        let before = Face::of(room);
        let commands: Vec<_> = room.edit(|room| {
            match input {
                Some(input) => room.handle_input(now, input),
                None => room.handle_timeout(now),
            }
            while room.poll_event().is_some() {}
            std::iter::from_fn(|| room.poll_command()).collect()
        });
        let after = Face::of(room);
        let again = after.phase == PhaseKind::Queued && before.phase != PhaseKind::Queued;
        if after.generation < before.generation || (again && after.generation == before.generation) {
            self.breaks(Law::Stale);
        }
        if before.outcome.is_some()
            && (after.outcome != before.outcome || after.delivered != before.delivered)
        {
            self.breaks(Law::OneOutcome);
        }
        let acts = !commands.is_empty();
        let mut lost = Vec::new();
        for command in commands {
            lost.extend(self.perform(setup, guest, command));
        }
        for worker in lost {
            self.tell_room(setup, guest, Some(Input::WorkerLost { worker }));
        }
        acts
    }

    /// The worker that turned out to be lost, if any.
    fn perform(&mut self, setup: &Setup, index: usize, command: Command) -> Option<NodeId> {
        let guest = &mut self.guests[index];
        match command {
            Command::Enqueue(bid) => guest.seeks = Some(bid.attempt.generation),
            Command::LeaveQueue { .. } => guest.seeks = None,
            Command::GiveBack { .. } => {}
            Command::Send { to, attempt, order } => return self.send(setup, to, attempt, order),
            Command::Fence { worker } => {
                if let Some(at) = self.worker_of(worker) {
                    self.cut(at);
                }
            }
            Command::Deliver { .. } if guest.answer.is_some() => self.breaks(Law::OneAnswer),
            Command::Deliver { .. } => {
                let most = setup.unread.unwrap_or(u32::MAX);
                // Each later attempt may end its prefill with one more.
                let more = guest.room.generation().0 - 1;
                if guest.room.delivered() - guest.read > most.saturating_add(more) {
                    self.breaks(Law::Ahead);
                }
            }
            Command::Answer(outcome) => {
                let wrong = guest.room.outcome() != Some(outcome);
                let second = guest.answer.replace(outcome).is_some();
                let short =
                    matches!(outcome, Outcome::Completed(_)) && guest.room.delivered() != setup.answer;
                if wrong || short {
                    self.breaks(Law::OneOutcome);
                }
                if second {
                    self.breaks(Law::OneAnswer);
                }
            }
            Command::End => {
                let early = guest.answer.is_none();
                let second = std::mem::replace(&mut guest.ended, true);
                if early || second {
                    self.breaks(Law::OneAnswer);
                }
            }
        }
        None
    }

    fn send(&mut self, setup: &Setup, to: NodeId, attempt: Attempt, order: Order) -> Option<NodeId> {
        let Some(index) = self.worker_of(to) else {
            return Some(to);
        };
        let worker = &mut self.workers[index];
        match worker.link {
            Link::Up if setup.loses_closes && matches!(order, Order::Close | Order::Release) => None,
            Link::Up if setup.loses_allows && matches!(order, Order::Allow { .. }) => None,
            Link::Up => {
                let message = ToHost::Order(attempt, order);
                worker.to_host.push(message);
                None
            }
            Link::Down {
                owner_knows: false, ..
            } => None,
            Link::Down {
                owner_knows: true, ..
            } => Some(to),
        }
    }

    /// A worker's word. If it is about anything but the current attempt, it proves a lease returned, or changes nothing.
    pub(super) fn report(&mut self, setup: &Setup, worker: NodeId, attempt: Attempt, report: Report) {
        let Some(guest) = self
            .guests
            .iter()
            .position(|guest| guest.room.id() == attempt.room)
        else {
            return;
        };
        let generation = attempt.generation;
        let room = &self.guests[guest].room;
        let (key, face) = (room.key(), Face::of(room));
        let known = room
            .legs()
            .iter()
            .any(|leg| leg.worker == worker && leg.generation == generation);
        let input = Input::FromWorker {
            worker,
            generation,
            report,
        };
        let acts = self.tell_room(setup, guest, Some(input));
        let room = &self.guests[guest].room;
        let mut after = Face::of(room);
        if after.phase == PhaseKind::Ended && face.phase == PhaseKind::Draining {
            after.phase = PhaseKind::Draining;
        }
        let unmoved = if known {
            generation == face.generation || after == face
        } else {
            room.key() == key && !acts
        };
        if !unmoved {
            self.breaks(Law::Stale);
        }
    }

    pub(super) fn owner_loses(&mut self, setup: &Setup, worker: NodeId) {
        for guest in 0..self.guests.len() {
            if self.guests[guest]
                .room
                .legs()
                .iter()
                .any(|leg| leg.worker == worker)
            {
                self.tell_room(setup, guest, Some(Input::WorkerLost { worker }));
            }
        }
    }

    /// The attempts with a leg at a worker, and of those the ones that were not told to close.
    pub(super) fn legs_at(&self, worker: NodeId) -> (Vec<Attempt>, Vec<Kept>) {
        let (mut asked, mut open) = (Vec::new(), Vec::new());
        for guest in &self.guests {
            for leg in guest.room.legs().into_iter().filter(|leg| leg.worker == worker) {
                let attempt = Attempt {
                    room: guest.room.id(),
                    generation: leg.generation,
                };
                asked.push(attempt);
                if leg.told_to_close.is_none() {
                    let until = guest.room.allowed();
                    open.push(Kept { attempt, until });
                }
            }
        }
        (asked, open)
    }
}
