//! What a simulation leaves for the invariants to be checked on.

use std::collections::BTreeMap;
use std::time::Duration;

use mock::Foreign;
use room::{NodeId, Time};
use runtime::{Bookkeeping, GatewayHandle, RoomView, WorkerState};

use crate::client::Seen;
use crate::fault::{Episode, Fault};
use crate::panics::Panics;
use crate::plan::Plan;
use crate::witness::Said;

/// A gateway at a moment.
#[derive(Clone, Debug)]
pub(crate) struct GatewaySample {
    /// Its incarnation.
    pub node: NodeId,
    /// The moment, by its clock.
    pub now: Time,
    /// Its open rooms.
    pub rooms: Vec<RoomView>,
    /// The workers that are linked with it, as they last said.
    pub workers: Vec<WorkerState>,
    /// What its tables hold.
    pub books: Bookkeeping,
}

impl GatewaySample {
    /// Looks at it.
    #[must_use]
    pub(crate) fn of(gateway: &GatewayHandle) -> Self {
        Self {
            node: gateway.node(),
            now: gateway.now(),
            rooms: gateway.rooms(),
            workers: gateway.workers(),
            books: gateway.bookkeeping(),
        }
    }

    /// Whether nothing of any room is left at it and at the workers, which are all `wanted`, as far as it knows.
    #[must_use]
    pub(crate) fn is_idle(&self, wanted: usize) -> bool {
        self.books == Bookkeeping::default()
            && self.workers.len() == wanted
            && self.workers.iter().all(|worker| {
                let stats = &worker.peer.stats;
                stats.blocks_total > 0
                    && stats.blocks_free + stats.blocks_cached == stats.blocks_total
                    && stats.slots_used == 0
                    && worker.peer.held.is_empty()
            })
    }
}

/// All gateways at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// The moment.
    pub at: Duration,
    /// Those that have power.
    pub gateways: Vec<GatewaySample>,
}

impl Sample {
    /// Whether nothing of any room is left anywhere, and nobody is missing.
    #[must_use]
    pub(crate) fn is_idle(&self, plan: &Plan) -> bool {
        let workers = plan.workers.len();
        self.gateways.len() == plan.gateways && self.gateways.iter().all(|gateway| gateway.is_idle(workers))
    }
}

/// Requests that were asked at once when nothing was wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probe {
    /// As their clients saw them.
    pub seen: Vec<Seen>,
    /// How long they took in all.
    pub took: Duration,
}

/// All of it.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    /// What was to happen.
    pub plan: Plan,
    /// Every request, as its client saw it.
    pub seen: Vec<Seen>,
    /// Looks at the gateways, from the first to the last.
    pub samples: Vec<Sample>,
    /// When, after the healing, nothing of any room was left; none if that never came.
    pub quiet: Option<Duration>,
    /// Requests that were asked of a new cluster.
    pub before: Probe,
    /// The same, asked when everything was back.
    pub after: Probe,
    /// Panics meanwhile.
    pub panics: Panics,
    /// Faults that were injected, by kind.
    pub injected: BTreeMap<&'static str, u64>,
    /// Foreign bytes, by the worker that found them.
    pub foreign: Vec<(String, Foreign)>,
    /// What the data path found: blocks that were written while they were pinned.
    pub moves: Vec<String>,
    /// What was said as it happened.
    pub said: Vec<(Duration, Said)>,
    /// Reads that are still open.
    pub reads_open: usize,
}

impl Evidence {
    /// Every request, probes included.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Seen> {
        self.before.seen.iter().chain(&self.seen).chain(&self.after.seen)
    }

    /// Whether something was wrong with the cluster between these times, or so shortly before that it shows.
    #[must_use]
    pub(crate) fn disturbed(&self, from: Duration, to: Duration) -> bool {
        self.met(from, to, |_| true)
    }

    /// Whether it was one of these.
    #[must_use]
    pub(crate) fn met(&self, from: Duration, to: Duration, these: impl Fn(&Fault) -> bool) -> bool {
        /// How long the worst takes to be over: a frozen worker's rooms are found, fenced, and served elsewhere.
        const AFTERMATH: Duration = Duration::from_secs(25);
        let meets = |episode: &Episode| episode.at <= to && from <= episode.ends() + AFTERMATH;
        let mut episodes = self.plan.episodes.iter();
        episodes.any(|episode| meets(episode) && these(&episode.fault))
    }

    /// How far the clock has leapt between these times: nobody could act meanwhile.
    #[must_use]
    pub(crate) fn leapt(&self, from: Duration, to: Duration) -> Duration {
        let leaps = self.plan.episodes.iter().filter(|episode| {
            matches!(episode.fault, Fault::Leap) && episode.at <= to && from <= episode.ends()
        });
        leaps.map(|episode| episode.lasts).sum()
    }
}
