//! What a model is made from, and what can happen next in it.

use room::{Attempt, Hold};
use stateright::{Model, Property};

use super::laws;
use super::links::Way;
use super::state::{Budget, Link, PROMPT, Stage, State, Task, Worker};

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Prefill,
    Decode,
    Mixed,
}

impl Kind {
    pub(super) fn is_mixed(self) -> bool {
        self == Self::Mixed
    }
}

/// One model: a small cluster, and the bounds of what may be done to it.
#[derive(Copy, Clone, Debug)]
pub(super) struct Setup {
    pub(super) workers: &'static [Kind],
    pub(super) rooms: u64,
    /// Tokens of each answer.
    pub(super) answer: u32,
    /// Of each worker's pool.
    pub(super) blocks: u32,
    /// All prompts are one text, and its blocks may be shared.
    pub(super) shares: bool,
    pub(super) budget: Budget,
    /// Every `Close` and every `Release` is lost, at no cost.
    pub(super) loses_closes: bool,
    /// So is every digest.
    pub(super) loses_digests: bool,
    /// So is every `Allow`.
    pub(super) loses_allows: bool,
    /// So many tokens of an answer may be computed and not taken by its client, who takes what there is at any moment, or never. With
    /// none nobody waits for clients.
    pub(super) unread: Option<u32>,
}

/// One step. Workers, rooms: by index.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Action {
    /// The clock moves to the next moment at which something may be due.
    Tick,
    RoomDue(usize),
    HostDue(usize),
    /// The desk finds credit at these workers.
    Admit {
        guest: usize,
        prefill: usize,
        decode: usize,
    },
    Abort(usize),
    /// The client takes all that there is.
    Read(usize),
    Deliver(Way, usize),
    Lose(Way, usize),
    /// Delivers the next message, which comes once more later.
    Repeat(Way, usize),
    /// Delivers the message behind the next one.
    Overtake(Way, usize),
    EngineSteps(usize, Attempt),
    EngineStops(usize, Attempt),
    Offered(usize, Attempt),
    Withdrawn(usize, Attempt),
    /// The source sends what a read asks for.
    BytesLeave(usize, Attempt),
    BytesLand(usize, Attempt),
    ReadEnds(usize, Attempt, bool),
    Crash(usize),
    Cut(usize),
    OwnerSeesLinkEnd(usize),
    HostSeesLinkEnd(usize),
    /// A new link; after a crash, with a new incarnation.
    LinkUp(usize),
}

impl Model for Setup {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        state.rooms_may(self.unread.is_some(), actions);
        for (at, worker) in state.workers.iter().enumerate() {
            state.links_may(at, worker, actions);
            state.work_may(at, worker, actions);
            if worker.host.poll_timeout().is_some_and(|due| due <= state.now) {
                actions.push(Action::HostDue(at));
            }
        }
        if self.time_may_pass(state) {
            actions.push(Action::Tick);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        state.step(self, action);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        laws::properties(self)
    }
}

impl Setup {
    /// Not before all that is due has been done. While anything waits to be done it costs: fairness is that budget.
    fn time_may_pass(&self, state: &State) -> bool {
        let is_due = |due: Option<room::Time>| due.is_some_and(|due| due <= state.now);
        let rooms = state.guests.iter().map(|guest| guest.room.poll_timeout());
        let hosts = state.workers.iter().map(|worker| worker.host.poll_timeout());
        let goes_on = state.guests.iter().any(|guest| !guest.ended)
            || state
                .workers
                .iter()
                .any(|worker| worker.host.stays().next().is_some());
        goes_on && !rooms.chain(hosts).any(is_due) && (state.left.slow > 0 || !state.is_busy())
    }
}

impl State {
    fn rooms_may(&self, reads: bool, actions: &mut Vec<Action>) {
        for (guest, this) in self.guests.iter().enumerate() {
            if this.room.poll_timeout().is_some_and(|due| due <= self.now) {
                actions.push(Action::RoomDue(guest));
            }
            if this.answer.is_none() && self.left.aborts > 0 {
                actions.push(Action::Abort(guest));
            }
            if reads && this.answer.is_none() && this.read < this.room.delivered() {
                actions.push(Action::Read(guest));
            }
            if this.seeks.is_some() {
                self.desk_may(guest, actions);
            }
        }
    }

    /// The desk is not here: credit may come at any moment, at any worker that is linked.
    fn desk_may(&self, guest: usize, actions: &mut Vec<Action>) {
        let linked = |at: &usize| self.workers[*at].link == Link::Up;
        let all = || (0..self.workers.len()).filter(linked);
        for decode in all() {
            let mixed = self.workers[decode].host.spec().mixed;
            for prefill in all().filter(|prefill| (*prefill == decode) == mixed) {
                // In a cluster of pairs the even ones prefill.
                if mixed || (prefill.is_multiple_of(2) && !decode.is_multiple_of(2)) {
                    actions.push(Action::Admit {
                        guest,
                        prefill,
                        decode,
                    });
                }
            }
        }
    }

    fn links_may(&self, at: usize, worker: &Worker, actions: &mut Vec<Action>) {
        for way in Way::BOTH {
            let (waiting, barriers) = way.waiting(worker);
            if waiting == 0 {
                continue;
            }
            actions.push(Action::Deliver(way, at));
            if self.left.network > 0 {
                actions.push(Action::Lose(way, at));
                // A digest neither comes twice nor out of turn.
                if !barriers.0 {
                    actions.push(Action::Repeat(way, at));
                }
                if waiting > 1 && !barriers.0 && !barriers.1 {
                    actions.push(Action::Overtake(way, at));
                }
            }
        }
        match worker.link {
            Link::Up => {
                if self.left.crashes > 0 {
                    actions.push(Action::Crash(at));
                }
                if self.left.cuts > 0 {
                    actions.push(Action::Cut(at));
                }
            }
            Link::Down {
                owner_knows: true,
                host_knows: true,
                ..
            } => actions.push(Action::LinkUp(at)),
            Link::Down {
                owner_knows,
                host_knows,
                ..
            } => {
                if !owner_knows {
                    actions.push(Action::OwnerSeesLinkEnd(at));
                }
                if !host_knows {
                    actions.push(Action::HostSeesLinkEnd(at));
                }
            }
        }
    }

    fn work_may(&self, at: usize, worker: &Worker, actions: &mut Vec<Action>) {
        for ((attempt, _), work) in &worker.at_work {
            let attempt = *attempt;
            match work.task {
                Task::Engine { stopping, .. } => {
                    if work.task.runs() {
                        actions.push(Action::EngineSteps(at, attempt));
                    }
                    if stopping {
                        actions.push(Action::EngineStops(at, attempt));
                    }
                }
                Task::Offer { offered, withdrawing } => {
                    if !offered {
                        actions.push(Action::Offered(at, attempt));
                    }
                    if withdrawing {
                        actions.push(Action::Withdrawn(at, attempt));
                    }
                }
                Task::Read { stage, cancelled, .. } => {
                    let has_source = self.source_of(attempt).is_some();
                    match stage {
                        Stage::AtSource if has_source => actions.push(Action::BytesLeave(at, attempt)),
                        Stage::UnderWay => actions.push(Action::BytesLand(at, attempt)),
                        Stage::AtSource | Stage::Landed => {}
                    }
                    if stage == Stage::Landed {
                        actions.push(Action::ReadEnds(at, attempt, true));
                    } else if cancelled || (stage == Stage::AtSource && !has_source) {
                        actions.push(Action::ReadEnds(at, attempt, false));
                    }
                }
            }
        }
    }

    /// Whether something waits to be done, credit for a room included.
    pub(super) fn is_busy(&self) -> bool {
        let mut grants = Vec::new();
        for guest in (0..self.guests.len()).filter(|guest| self.guests[*guest].seeks.is_some()) {
            self.desk_may(guest, &mut grants);
        }
        !grants.is_empty() || self.workers.iter().any(Worker::is_busy)
    }

    /// The worker that offers the blocks of an attempt.
    pub(super) fn source_of(&self, attempt: Attempt) -> Option<usize> {
        let offers = |worker: &Worker| {
            worker
                .at_work
                .get(&(attempt, Hold::Offer))
                .is_some_and(|work| matches!(work.task, Task::Offer { offered: true, .. }))
        };
        self.workers.iter().position(offers)
    }
}

impl Worker {
    /// Whether something is bound to happen.
    fn is_busy(&self) -> bool {
        let hears =
            matches!(self.link, Link::Down { owner_knows, host_knows, .. } if !(owner_knows && host_knows));
        let works = self.at_work.values().any(|work| work.task.is_owed());
        hears || works || !self.to_host.is_empty() || !self.to_owner.is_empty()
    }
}

impl Task {
    /// Whether the engine has something to compute, and may.
    fn runs(self) -> bool {
        matches!(self, Self::Engine { tokens, waits, until, .. } if !waits && tokens - PROMPT < until)
    }

    fn is_owed(self) -> bool {
        match self {
            Self::Engine { stopping, .. } => stopping || self.runs(),
            Self::Offer { offered, withdrawing } => !offered || withdrawing,
            Self::Read { .. } => true,
        }
    }
}
