//! What can be asked of a room at any moment: where it is, what it waits for, until when, who holds blocks for it.

use crate::id::{Generation, NodeId, RoomId};
use crate::outcome::Outcome;
use crate::phase::PhaseKind;
use crate::room::Room;
use crate::room::leg::{Leg, LegState};
use crate::room::spec::{LegView, RoomSpec};
use crate::room::state::Phase;
use crate::time::Time;

/// What a room waits for.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum WaitsFor {
    /// Credit at the desk.
    Credit,
    /// The end of a pause before it asks for credit again.
    Pause {
        /// When that is.
        until: Time,
    },
    /// Decode's grant.
    Grant {
        /// Whose.
        worker: NodeId,
    },
    /// The prompt to be computed.
    Prompt {
        /// By whom.
        worker: NodeId,
        /// Positions done.
        computed: u32,
        /// Positions in all.
        positions: u32,
    },
    /// The KV to be pulled.
    Kv {
        /// Who offers it.
        from: NodeId,
        /// Who pulls.
        to: NodeId,
    },
    /// The next token.
    Token {
        /// From whom.
        worker: NodeId,
    },
    /// The answer's reader, who has not taken enough of it. Its worker keeps what it has.
    Reader,
    /// Proof that a lease is returned.
    Proof {
        /// By the first of those that owe it.
        worker: NodeId,
        /// Of how many leases.
        leases: usize,
    },
    /// Nothing any more.
    Nothing,
}

impl Room {
    /// Its name.
    #[must_use]
    pub fn id(&self) -> RoomId {
        self.id
    }

    /// What it was made from.
    #[must_use]
    pub fn spec(&self) -> &RoomSpec {
        &self.spec
    }

    /// Where it is.
    #[must_use]
    pub fn phase(&self) -> PhaseKind {
        self.phase.kind()
    }

    /// Since when it is there.
    #[must_use]
    pub fn in_phase_since(&self) -> Time {
        self.entered
    }

    /// The current attempt.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The outcome, once it is fixed.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// Tokens that went to the client.
    #[must_use]
    pub fn delivered(&self) -> u32 {
        self.delivered
    }

    /// How far the current attempt was allowed to go: see [`Work::until`](crate::Work::until). A digest repeats it.
    #[must_use]
    pub fn allowed(&self) -> u32 {
        self.allowed
    }

    /// Inputs that changed nothing because they were stale, out of turn, or repeated.
    #[must_use]
    pub fn stale_inputs(&self) -> u64 {
        self.stale_inputs
    }

    /// What ends the present wait at the latest: the phase's deadline or the request's; while draining, the next fence.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        match self.phase.deadline() {
            Some(phase) => Some(phase.at().min(self.spec.deadline)),
            None => self.legs.iter().filter_map(Leg::fence_at).min(),
        }
    }

    /// Every worker that may hold a lease, and for which attempt. A digest lists those that were not told to close.
    #[must_use]
    pub fn legs(&self) -> Vec<LegView> {
        let view = |leg: &Leg| {
            let told_to_close = match &leg.state {
                LegState::Promised => return None,
                LegState::Open => None,
                LegState::Closing(closing) => Some(closing.told),
            };
            Some(LegView {
                worker: leg.worker,
                generation: leg.generation,
                told_to_close,
            })
        };
        let mut legs: Vec<_> = self.legs.iter().filter_map(view).collect();
        legs.sort_unstable();
        legs
    }

    /// What it waits for.
    #[must_use]
    pub fn waits_for(&self) -> WaitsFor {
        match &self.phase {
            Phase::Queued(p) => p
                .pause_until
                .map_or(WaitsFor::Credit, |until| WaitsFor::Pause { until }),
            Phase::Reserving(p) => WaitsFor::Grant {
                worker: p.route.decode,
            },
            Phase::Prefilling(p) => WaitsFor::Prompt {
                worker: p.route.prefill,
                computed: p.computed,
                positions: self.work().positions,
            },
            Phase::Pulling(p) => WaitsFor::Kv {
                from: p.route.prefill,
                to: p.route.decode,
            },
            Phase::Decoding(_) if self.awaits_reader() => WaitsFor::Reader,
            Phase::Decoding(p) => WaitsFor::Token { worker: p.worker },
            Phase::Draining => self
                .legs()
                .first()
                .map_or(WaitsFor::Nothing, |leg| WaitsFor::Proof {
                    worker: leg.worker,
                    leases: self.legs.len(),
                }),
            Phase::Ended => WaitsFor::Nothing,
        }
    }
}
