//! One measurement of a server under a load, and several of them.

use super::client::{Apart, Load, Report};
use super::server::Server;
use super::spread::Spread;
use super::usage::Usage;

/// A server under a load, once.
pub(super) struct Sample {
    /// What the clients found.
    pub(super) report: Report,
    /// What the server used meanwhile.
    pub(super) used: Usage,
}

impl Sample {
    /// Runs a load to its end. None of its requests may fail.
    pub(super) async fn take(server: &Server, load: &Load) -> Result<Self, String> {
        let before = server.usage();
        let report = Apart::run(load).await;
        let used = server.usage() - &before;
        match report.failed {
            0 => Ok(Self { report, used }),
            failed => Err(format!(
                "{failed} of {} requests failed: {}",
                failed + report.requests,
                report.errors.join("; ")
            )),
        }
    }
}

/// A server under the same load several times; or why it could not be measured.
#[derive(Default)]
pub(super) struct Samples {
    all: Vec<Sample>,
    error: Option<String>,
}

impl Samples {
    /// Adds a measurement. What failed once is not measured.
    pub(super) fn add(&mut self, sample: Result<Sample, String>) {
        match sample {
            Ok(sample) => self.all.push(sample),
            Err(error) => self.error = Some(error),
        }
    }

    /// Why it could not be measured.
    pub(super) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Some figure of each, in order; none if it could not be measured.
    pub(super) fn figures(&self, figure: impl Fn(&Sample) -> f64) -> Vec<f64> {
        match self.error {
            None => self.all.iter().map(figure).collect(),
            Some(_) => Vec::new(),
        }
    }

    /// Some figure: its median and how far it spreads.
    pub(super) fn spread(&self, figure: impl Fn(&Sample) -> f64) -> Option<Spread> {
        let figures = self.figures(figure);
        (!figures.is_empty()).then(|| Spread::of(figures))
    }

    /// This by the other, round by round.
    pub(super) fn ratio(&self, other: &Self, figure: impl Fn(&Sample) -> f64 + Copy) -> Option<Spread> {
        let (own, other) = (self.figures(figure), other.figures(figure));
        let ratios: Vec<f64> = own.iter().zip(other).map(|(own, other)| own / other).collect();
        (!ratios.is_empty()).then(|| Spread::of(ratios))
    }

    /// The last.
    pub(super) fn last(&self) -> Option<&Sample> {
        self.all.last()
    }
}

/// A cell of a table with so many digits after the point; a dash where nothing was measured.
pub(super) fn cell(spread: Option<Spread>, digits: usize) -> String {
    match spread {
        // Of answers of one token there are no gaps.
        Some(spread) if spread.median.is_finite() => format!("{spread:.digits$}"),
        _ => "–".to_owned(),
    }
}
