//! What a cell of the matrix is.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::ctx::Ctx;
use super::setup::Setup;

/// Injects a fault into the cluster of a [`Ctx`] and measures. Panics if what must be true is not.
pub type Run = for<'a> fn(&'a mut Ctx) -> Pin<Box<dyn Future<Output = Measured> + Send + 'a>>;

/// One fault at one moment.
#[derive(Copy, Clone)]
pub struct Cell {
    /// Its row, a dot, and what distinguishes it within the row: `F13.prefilling`.
    pub id: &'static str,
    /// What is injected, and what must be true then, in words.
    pub what: &'static str,
    /// The cluster that it needs.
    pub setup: &'static Setup,
    /// By when.
    pub bound: Bound,
    /// Does it.
    pub run: Run,
}

impl Cell {
    /// The row: `F13` of `F13.prefilling`.
    #[must_use]
    pub fn row(&self) -> &'static str {
        self.id.split_once('.').map_or(self.id, |(row, _)| row)
    }
}

/// Bounds of one run, from the injection. They are what the cell's row promises, on a machine that has nothing else to do.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct Bound {
    /// Until the client has what is promised to it.
    pub client: Duration,
    /// Until every block is back on every worker that lives.
    pub back: Duration,
}

impl Bound {
    /// In milliseconds.
    #[must_use]
    pub const fn ms(client: u64, back: u64) -> Self {
        Self {
            client: Duration::from_millis(client),
            back: Duration::from_millis(back),
        }
    }
}

/// What one run of a cell took; what it does not measure is `None`.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Until the client had what is promised to it.
    pub client: Option<Duration>,
    /// Until every block was back on every worker that lives.
    pub back: Option<Duration>,
    /// What else is worth knowing, for the run's line.
    pub note: String,
    /// What this machine lacks for the cell, which did nothing therefore.
    pub lacking: Option<String>,
}

impl Measured {
    /// Both times.
    #[must_use]
    pub fn new(client: Duration, back: Duration) -> Self {
        Self {
            client: Some(client),
            back: Some(back),
            ..Self::default()
        }
    }

    /// Nothing was done: the machine has no such thing.
    #[must_use]
    pub fn skipped(lacking: impl Into<String>) -> Self {
        Self {
            lacking: Some(lacking.into()),
            ..Self::default()
        }
    }

    /// With this said beside it.
    #[must_use]
    pub fn note(self, note: impl Into<String>) -> Self {
        Self {
            note: note.into(),
            ..self
        }
    }
}
