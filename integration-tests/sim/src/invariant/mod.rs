//! The invariants of the design, each in a file of its own, checked on what a simulation left. INV-12 (same seed, same trace) is
//! checked by running twice.

mod inv01;
mod inv02;
mod inv03;
mod inv04;
mod inv05;
mod inv06;
mod inv07;
mod inv08;
mod inv09;
mod inv10;
mod inv11;
mod liveness;
mod said;
mod stays;

use std::fmt;

use crate::evidence::Evidence;

/// An invariant that did not hold.
#[derive(Clone, Eq, PartialEq, Debug)]
pub struct Violation {
    /// Which.
    pub invariant: &'static str,
    /// How.
    pub what: String,
}

impl Violation {
    pub(crate) fn of_liveness(what: String) -> Self {
        Self {
            invariant: LIVENESS,
            what,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.what)
    }
}

const LIVENESS: &str = "liveness";

type Check = fn(&Evidence) -> Vec<String>;

const CHECKS: [(&str, Check); 18] = [
    ("INV-01", inv01::check),
    ("INV-02", inv02::check),
    ("INV-03", inv03::check),
    ("INV-04", inv04::check),
    ("INV-05", inv05::check),
    ("INV-06", inv06::check),
    ("INV-07", inv07::check),
    ("INV-08", inv08::check),
    ("INV-09", inv09::check),
    ("INV-10", inv10::check),
    ("INV-11", inv11::check),
    ("INV-03", said::one_outcome),
    ("INV-07", said::only_newer),
    ("INV-08", said::every_lease_is_proven),
    ("INV-10", said::possible_failures),
    ("INV-08", stays::closed_in_time),
    ("INV-08", stays::leaving_is_noticed),
    (LIVENESS, liveness::check),
];

/// Checks all, and says what does not hold.
#[must_use]
pub(crate) fn check(evidence: &Evidence) -> Vec<Violation> {
    let checked = CHECKS.iter().flat_map(|(invariant, check)| {
        check(evidence)
            .into_iter()
            .map(|what| Violation { invariant, what })
    });
    checked.collect()
}
