//! Sets of labels, and the shapes of families.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};
use room::Span;

use crate::event::Text;
use crate::facts::Facts;
use crate::sampling::Sampling;

/// Declares sets of labels: names are those of the fields.
macro_rules! labels {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),+ })+) => { $(
        $(#[$doc])*
        #[derive(Clone, Eq, PartialEq, Hash, Debug, EncodeLabelSet)]
        pub(super) struct $name { $(pub(super) $field: $type),+ }
    )+ };
}

labels! {
    /// An outcome and its reason.
    Ended { outcome: &'static str, reason: &'static str }
    /// An outcome.
    OfOutcome { outcome: &'static str }
    /// A reason.
    Reason { reason: &'static str }
    /// A phase.
    Phase { phase: &'static str }
    /// A worker, and how a lease there is known to be returned.
    WorkerProof { worker: Text, proof: &'static str }
    /// A worker.
    Worker { worker: Text }
    /// A worker, and why.
    WorkerReason { worker: Text, reason: &'static str }
    /// A worker, and in which phase.
    WorkerPhase { worker: Text, phase: &'static str }
    /// A worker, and how its link ended.
    WorkerEnd { worker: Text, end: &'static str }
    /// A worker, and who may still touch the blocks.
    WorkerHolds { worker: Text, holds: &'static str }
    /// A worker, and the state of its blocks.
    WorkerState { worker: Text, state: &'static str }
    /// A worker, and which way.
    WorkerWay { worker: Text, direction: &'static str }
    /// A worker, and what carries its KV.
    Carried { worker: Text, transport: Text }
    /// Two workers, and what carried KV from one to the other.
    Moved { from: Text, to: Text, transport: Text }
    /// What carried KV.
    Transport { transport: Text }
    /// What a worker does.
    Role { role: &'static str }
    /// What there is.
    What { what: &'static str }
    /// What should be equal.
    Between { between: &'static str }
    /// A trace that an observation came from.
    TraceLabel { trace_id: String }
}

/// Counts by label.
pub(super) type Counts<L> = Family<L, Counter>;
/// Levels by label.
pub(super) type Levels<L> = Family<L, Gauge>;
/// Seconds and other fractions by label.
pub(super) type Amounts<L> = Family<L, Gauge<f64, std::sync::atomic::AtomicU64>>;
/// Times with traces that took them.
pub(super) type Times = HistogramWithExemplars<TraceLabel>;
/// The same by label.
pub(super) type TimesBy<L> = Family<L, Times>;
/// Distributions by label.
pub(super) type Spread<L> = Family<L, Histogram>;

/// Registers metrics, each in one line.
pub(super) struct Shelf<'a>(pub(super) &'a mut Registry);

impl Shelf<'_> {
    /// Registers a metric and gives it back. Its help has no full stop: the encoder adds one.
    pub(super) fn put<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register(format!("innkeeper_{name}"), help, metric.clone());
        metric
    }

    /// The same with a unit, which the encoder adds to the name.
    pub(super) fn put_in<M: Metric + Clone>(&mut self, unit: Unit, name: &str, help: &str, metric: M) -> M {
        self.0
            .register_with_unit(format!("innkeeper_{name}"), help, unit, metric.clone());
        metric
    }

    /// A counter that is made here.
    pub(super) fn count<M: Metric + Clone + Default>(&mut self, name: &str, help: &str) -> M {
        self.put(name, help, M::default())
    }
}

/// Upper bounds of buckets for times from a millisecond to ten minutes.
pub(super) const LONG: [f64; 18] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
    600.0,
];
/// For times between tokens, and of steps.
pub(super) const SHORT: [f64; 13] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];
/// For sequences in a batch, and tokens in a step.
pub(super) const POWERS: [f64; 13] = [
    1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0,
];

/// A histogram of longer times.
pub(super) fn long() -> Times {
    Times::new(LONG.into_iter())
}

/// A histogram of shorter times.
pub(super) fn short() -> Times {
    Times::new(SHORT.into_iter())
}

/// The same without traces.
pub(super) fn plain_short() -> Histogram {
    Histogram::new(SHORT)
}

/// A histogram of sizes.
pub(super) fn powers() -> Histogram {
    Histogram::new(POWERS)
}

/// A length of time in seconds.
pub(super) fn seconds(span: Span) -> f64 {
    span.micros as f64 / 1e6
}

/// Which observations name the trace they came from: those whose trace is kept, as far as that is known then. Without traces all of them do:
/// `innkeeper explain` finds a room by its trace.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Exemplars {
    pub(super) sampling: Option<Sampling>,
}

impl Exemplars {
    /// Of something that is kept with its trace only if that was decided at the beginning.
    pub(super) fn of(&self, facts: &Facts) -> Option<TraceLabel> {
        self.when(facts, false)
    }

    /// Of a first token.
    pub(super) fn of_first_token(&self, facts: &Facts, took: Span) -> Option<TraceLabel> {
        self.when(
            facts,
            self.sampling
                .is_some_and(|sampling| took >= sampling.slow_first_token),
        )
    }

    /// Of a whole room.
    pub(super) fn of_room(&self, facts: &Facts, took: Span, in_order: bool) -> Option<TraceLabel> {
        let slow = self.sampling.is_some_and(|sampling| took >= sampling.slow_total);
        self.when(facts, slow || !in_order)
    }

    fn when(&self, facts: &Facts, kept: bool) -> Option<TraceLabel> {
        (kept || self.sampling.is_none() || facts.trace.is_sampled()).then(|| TraceLabel {
            trace_id: facts.trace.id.to_string(),
        })
    }
}
