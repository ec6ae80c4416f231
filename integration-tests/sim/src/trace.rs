//! Everything that the cluster says about itself, in order, with its virtual time: one number of it (INV-12).

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use xxhash_rust::xxh3::Xxh3;

/// Whose events belong to the trace.
const TARGETS: [&str; 6] = ["sim", "runtime", "mesh", "engine", "kv", "room"];

struct State {
    origin: Option<Instant>,
    hash: Xxh3,
    events: u64,
    /// Every line goes to standard error too.
    aloud: bool,
}

/// The trace of one simulation. Cloning gives the same one.
#[derive(Clone)]
pub(crate) struct Trace(Arc<Mutex<State>>);

impl Trace {
    /// An empty one. `aloud`: its lines go to standard error as they come.
    #[must_use]
    pub(crate) fn new(aloud: bool) -> Self {
        Self(Arc::new(Mutex::new(State {
            origin: None,
            hash: Xxh3::new(),
            events: 0,
            aloud,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Times are counted from now. To be called within the simulation's runtime.
    pub(crate) fn begin(&self) {
        self.state().origin = Some(Instant::now());
    }

    /// Virtual time since [`Trace::begin`].
    #[must_use]
    pub(crate) fn now(&self) -> Duration {
        let origin = self.state().origin;
        origin.map_or(Duration::ZERO, |origin| origin.elapsed())
    }

    /// The number that two runs of one seed have in common.
    #[must_use]
    pub(crate) fn digest(&self) -> u64 {
        self.state().hash.digest()
    }

    /// How many events there were.
    #[must_use]
    pub(crate) fn events(&self) -> u64 {
        self.state().events
    }
}

/// An event's fields as one line.
struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // A String takes everything.
        let _ = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

fn belongs(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    let name = target.split("::").next().unwrap_or(target);
    TARGETS.contains(&name)
}

impl<S: Subscriber> Layer<S> for Trace {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.is_event() && belongs(metadata)
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let mut state = self.state();
        let micros = state.origin.map_or(0, |origin| origin.elapsed().as_micros());
        let mut line = String::with_capacity(160);
        let (s, us) = (micros / 1_000_000, micros % 1_000_000);
        let _ = write!(line, "{s:4}.{us:06} {:5} {}", metadata.level(), metadata.target());
        event.record(&mut Line(&mut line));
        state.hash.update(line.as_bytes());
        state.events += 1;
        if state.aloud {
            eprintln!("{line}");
        }
    }
}
