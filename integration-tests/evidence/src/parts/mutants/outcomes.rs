//! What cargo-mutants writes: `mutants.out/outcomes.json`.

use serde::Deserialize;

use super::Counts;

/// The file, as far as it is of interest.
#[derive(Debug, Deserialize)]
pub(super) struct Outcomes {
    outcomes: Vec<Outcome>,
    /// None while it runs, or if it was ended from outside.
    end_time: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Outcome {
    scenario: Scenario,
    summary: Summary,
}

#[derive(Debug, Deserialize)]
enum Scenario {
    /// The code as it is.
    Baseline,
    Mutant(Mutant),
}

#[derive(Debug, Deserialize)]
struct Mutant {
    /// `FILE:LINE:COLUMN: CHANGE`.
    name: String,
    file: String,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, Deserialize)]
enum Summary {
    Success,
    CaughtMutant,
    MissedMutant,
    Unviable,
    Failure,
    Timeout,
}

impl Mutant {
    /// Its name without its place in the file, which moves with every change before it.
    fn lasting_name(&self) -> String {
        let change = self
            .name
            .split_once(": ")
            .map_or(self.name.as_str(), |(_, change)| change);
        format!("{}: {change}", self.file)
    }
}

impl Outcomes {
    /// Whether it came to its end.
    pub(super) fn is_finished(&self) -> bool {
        self.end_time.is_some()
    }

    fn mutants(&self) -> impl Iterator<Item = (&Mutant, Summary)> {
        self.outcomes
            .iter()
            .filter_map(|outcome| match &outcome.scenario {
                Scenario::Baseline => None,
                Scenario::Mutant(mutant) => Some((mutant, outcome.summary)),
            })
    }

    /// What became of those in files below `folder`.
    pub(super) fn counts(&self, folder: &str) -> Counts {
        let mut counts = Counts::default();
        for (_, summary) in self
            .mutants()
            .filter(|(mutant, _)| mutant.file.starts_with(folder))
        {
            match summary {
                Summary::CaughtMutant => counts.caught += 1,
                Summary::MissedMutant => counts.missed += 1,
                Summary::Timeout => counts.timeout += 1,
                Summary::Unviable => counts.unviable += 1,
                // Of runs that only check whether mutants compile.
                Summary::Success | Summary::Failure => {}
            }
        }
        counts
    }

    /// Those that no test noticed, in order.
    pub(super) fn missed(&self) -> Vec<String> {
        let missed = self
            .mutants()
            .filter(|(_, summary)| *summary == Summary::MissedMutant);
        let mut names: Vec<String> = missed.map(|(mutant, _)| mutant.lasting_name()).collect();
        names.sort();
        names
    }
}
