//! Mutation testing: the code is changed in one place, and some test has to fail.

mod outcomes;
mod reasons;

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Part;
use crate::Stamp;
use crate::claim::Claim;
use crate::files::{Error, read};
use crate::text::{count, len, paragraph, percent, table};
use outcomes::Outcomes;
use reasons::Reasons;

/// Each is run by itself, into a folder of its name below `mutants` in the target folder.
const PACKAGES: [&str; 3] = ["room", "wire", "kv"];

/// Where not a single mutant may be missed.
const LEDGER: &str = "actors/room/src/ledger/";

/// In thousands, how many have to be caught elsewhere.
const CAUGHT: u64 = 950;

/// What cargo-mutants found.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Mutants(Vec<Package>);

#[derive(Debug, Serialize, Deserialize)]
struct Package {
    recorded: Option<Stamp>,
    package: String,
    /// All mutants were tried.
    finished: bool,
    all: Counts,
    /// Those in the ledger.
    ledger: Counts,
    /// Those that no test caught, without their lines.
    missed: Vec<String>,
}

/// Mutants by what became of them.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Counts {
    caught: u64,
    missed: u64,
    timeout: u64,
    unviable: u64,
}

impl Counts {
    /// Those that were noticed: a test failed, or did not come to an end.
    fn noticed(self) -> u64 {
        self.caught + self.timeout
    }

    /// Those that could have been.
    fn viable(self) -> u64 {
        self.noticed() + self.missed
    }

    fn share(self) -> String {
        percent(self.noticed(), self.viable())
    }

    fn row(self, name: String) -> Vec<String> {
        let all = [self.caught, self.timeout, self.missed, self.unviable];
        let mut row = vec![name, self.share()];
        row.extend(all.map(count));
        row
    }
}

impl Package {
    /// What is recorded of a package in its folder.
    fn recorded(package: &str, folder: &Path) -> Result<Option<Self>, Error> {
        let path = folder.join("mutants.out/outcomes.json");
        let Some(text) = read(&path)? else { return Ok(None) };
        let outcomes: Outcomes = serde_json::from_str(&text).map_err(|error| Error::new(&path, &error))?;
        let path = folder.join("stamp.json");
        let stamp = match read(&path)? {
            Some(text) => Some(stamp(&text).map_err(|error| Error::new(&path, &error))?),
            None => None,
        };
        Ok(Some(Self::of(package, stamp, &outcomes)))
    }

    fn of(package: &str, recorded: Option<Stamp>, outcomes: &Outcomes) -> Self {
        Self {
            recorded,
            package: package.to_owned(),
            finished: outcomes.is_finished(),
            all: outcomes.counts(""),
            ledger: outcomes.counts(LEDGER),
            missed: outcomes.missed(),
        }
    }

    fn claim(&self) -> Claim {
        let Counts { missed, .. } = self.all;
        let unfinished = if self.finished { "" } else { "; not all were tried" };
        let found = format!("{}, {} missed{unfinished}", self.all.share(), count(missed));
        let enough = self.all.noticed() * 1_000 >= self.all.viable() * CAUGHT;
        Claim::new(
            format!("95 % of the mutants of `{}` are caught", self.package),
            found,
            enough && self.finished && self.all.viable() > 0,
        )
    }
}

fn stamp(text: &str) -> serde_json::Result<Stamp> {
    #[derive(Deserialize)]
    struct Line {
        recorded: Stamp,
    }
    serde_json::from_str(text).map(|line: Line| line.recorded)
}

impl Part for Mutants {
    const TITLE: &'static str = "Mutants";
    const RECIPE: &'static str = "just mutants";
    const KEPT: &'static str = "mutants.json";
    const ASKED: &'static str =
        "95 % of the mutants of `room`, `wire` and `kv` are caught, all of them in the ledger";

    fn recorded(target: &Path) -> Result<Option<Self>, Error> {
        let folder = target.join("mutants");
        let mut all = Vec::new();
        for package in PACKAGES {
            all.extend(Package::recorded(package, &folder.join(package))?);
        }
        Ok((!all.is_empty()).then_some(Self(all)))
    }

    fn stamps(&self) -> Vec<Option<&Stamp>> {
        self.0.iter().map(|package| package.recorded.as_ref()).collect()
    }

    fn claims(&self) -> Vec<Claim> {
        let mut claims: Vec<Claim> = self.0.iter().map(Package::claim).collect();
        for package in PACKAGES {
            if !self.0.iter().any(|recorded| recorded.package == package) {
                let asked = format!("95 % of the mutants of `{package}` are caught");
                claims.push(Claim::new(asked, "not recorded", false));
            }
        }
        if let Some(room) = self.0.iter().find(|recorded| recorded.package == "room") {
            let found = format!("{}, {} missed", room.ledger.share(), count(room.ledger.missed));
            let all = room.ledger.missed == 0 && room.ledger.viable() > 0 && room.finished;
            claims.push(Claim::new(
                "all mutants of the ledger and its leases are caught",
                found,
                all,
            ));
        }
        claims
    }

    fn section(&self, out: &mut String, folder: &Path) -> Result<(), Error> {
        paragraph(
            out,
            "The code is changed in one place, and the tests of its crate are run: somebody has to notice. A mutant is caught if a test \
             fails or does not come to an end; one that does not compile does not count.",
        );
        let rows = self.0.iter().flat_map(|package| {
            let of_ledger =
                (package.package == "room").then(|| package.ledger.row(format!("of them `{LEDGER}`")));
            [Some(package.all.row(format!("`{}`", package.package))), of_ledger]
                .into_iter()
                .flatten()
        });
        let head = [
            "crate",
            "caught",
            "by a failing test",
            "by a test that hangs",
            "missed",
            "do not compile",
        ];
        table(out, &head, rows);
        let reasons = Reasons::read(folder)?;
        let missed: Vec<&String> = self.0.iter().flat_map(|package| &package.missed).collect();
        if !missed.is_empty() {
            let without = missed
                .iter()
                .filter(|mutant| reasons.of(mutant).is_none())
                .count();
            paragraph(
                out,
                &format!(
                    "Those that were missed, and why that is no gap; {} without a reason:",
                    len(without)
                ),
            );
            let row = |mutant: &&String| {
                vec![
                    format!("`{mutant}`"),
                    reasons.of(mutant).unwrap_or("**no reason is given**").to_owned(),
                ]
            };
            table(out, &["mutant", "reason"], missed.iter().map(row));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::outcomes::Outcomes;
    use super::{Mutants, Package, Part};
    use crate::parts::shown;

    fn outcome(file: &str, summary: &str) -> String {
        format!(
            r#"{{"scenario": {{"Mutant": {{"name": "{file}:12:5: replace a -> bool with true", "package": "innkeeper-room",
            "file": "{file}", "genre": "FnValue", "replacement": "true"}}}}, "summary": "{summary}", "log_path": "x", "phase_results": []}}"#
        )
    }

    /// What cargo-mutants writes of these.
    fn package(name: &str, outcomes: &[String], end: &str) -> Package {
        let baseline =
            r#"{"scenario": "Baseline", "summary": "Success", "log_path": "x", "phase_results": []}"#
                .to_owned();
        let all = [&[baseline], outcomes].concat().join(",");
        let text = format!(
            r#"{{"outcomes": [{all}], "total_mutants": {}, "missed": 0, "end_time": {end}, "cargo_mutants_version": "27.1.0"}}"#,
            outcomes.len()
        );
        let outcomes: Outcomes = serde_json::from_str(&text).unwrap();
        Package::of(name, None, &outcomes)
    }

    fn check(packages: Vec<Package>, lines: &[&str]) {
        let kept = serde_json::to_string(&Mutants(packages)).unwrap();
        let text = shown::<Mutants>(&kept);
        for line in lines {
            assert!(text.contains(line), "no {line:?} in\n{text}");
        }
    }

    const ENDED: &str = r#""2026-01-01T00:00:00Z""#;
    const LEDGER: &str = "actors/room/src/ledger/lease.rs";
    const OTHER: &str = "actors/room/src/watch.rs";

    #[test]
    fn the_ledger_is_counted_by_itself() {
        let caught = || outcome(OTHER, "CaughtMutant");
        let mut room = vec![
            outcome(LEDGER, "Timeout"),
            outcome(LEDGER, "Unviable"),
            outcome(OTHER, "MissedMutant"),
        ];
        room.extend((0..18).map(|_| caught()));
        check(
            vec![package("room", &room, ENDED), package("kv", &[caught()], "null")],
            &[
                "`room` are caught: 95.0 %, 1 missed: true",
                "`kv` are caught: 100.0 %, 0 missed; not all were tried: false",
                "`wire` are caught: not recorded: false",
                "ledger and its leases are caught: 100.0 %, 0 missed: true",
                "| `room` | 95.0 % | 18 | 1 | 1 | 1 |",
                "| of them `actors/room/src/ledger/` | 100.0 % | 0 | 1 | 0 | 1 |",
                "| `actors/room/src/watch.rs: replace a -> bool with true` | **no reason is given** |",
            ],
        );
    }

    #[test]
    fn one_missed_in_the_ledger_is_too_many() {
        let mut room = vec![outcome(LEDGER, "MissedMutant")];
        room.extend((0..99).map(|_| outcome(LEDGER, "CaughtMutant")));
        check(
            vec![package("room", &room, ENDED)],
            &[
                "`room` are caught: 99.0 %, 1 missed: true",
                "leases are caught: 99.0 %, 1 missed: false",
            ],
        );
    }

    #[test]
    fn nothing_recorded_is_nothing_kept() {
        assert!(
            Mutants::recorded(std::path::Path::new("/nonexistent"))
                .unwrap()
                .is_none()
        );
    }
}
