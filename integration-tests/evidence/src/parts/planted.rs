//! Bugs planted in the product on purpose.

use std::path::Path;

use ::planted::Bug;
use serde::{Deserialize, Serialize};

use super::Part;
use crate::Stamp;
use crate::claim::Claim;
use crate::files::Error;
use crate::text::{len, paragraph, table};

/// How many bugs, found within how many seeds, are asked for.
const BUGS: usize = 16;
const WITHIN: u64 = 200;
const MEDIAN: u64 = 50;

/// What `sim planted` writes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Planted {
    recorded: Option<Stamp>,
    first_seeds: Vec<u64>,
    seeds_at_most: u64,
    virtual_minutes_each: u64,
    bugs: Vec<Hunted>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Hunted {
    bug: String,
    seeds: Vec<Option<u64>>,
    median: Option<u64>,
    found_by: Vec<String>,
}

impl Hunted {
    /// The most seeds that it took; none if it was not found from every first seed.
    fn most(&self) -> Option<u64> {
        let all: Option<Vec<u64>> = self.seeds.iter().copied().collect();
        all?.into_iter().max()
    }
}

impl Planted {
    fn of(&self, bug: Bug) -> Option<&Hunted> {
        self.bugs.iter().find(|hunted| hunted.bug == bug.name())
    }
}

fn or_dash(seeds: Option<u64>) -> String {
    seeds.map_or_else(|| "-".to_owned(), |seeds| seeds.to_string())
}

impl Part for Planted {
    const TITLE: &'static str = "Planted bugs";
    const RECIPE: &'static str = "just planted";
    const KEPT: &'static str = "planted.json";
    const ASKED: &'static str = "at least 16, each found within 200 seeds, by 50 in the median";

    fn stamps(&self) -> Vec<Option<&Stamp>> {
        vec![self.recorded.as_ref()]
    }

    fn claims(&self) -> Vec<Claim> {
        let hunted: Vec<&Hunted> = Bug::ALL.iter().filter_map(|bug| self.of(*bug)).collect();
        let most: Vec<u64> = hunted.iter().filter_map(|bug| bug.most()).collect();
        let medians: Vec<u64> = hunted.iter().filter_map(|bug| bug.median).collect();
        let worst = |seeds: &[u64]| or_dash(seeds.iter().max().copied());
        let all = |found: usize, within: u64, seeds: &[u64]| {
            found == Bug::ALL.len() && seeds.iter().all(|seeds| *seeds <= within)
        };
        vec![
            Claim::new(
                format!("at least {BUGS} bugs, each found within {WITHIN} seeds, wherever one begins"),
                format!(
                    "{} of {} found, the slowest by {} seeds",
                    most.len(),
                    Bug::ALL.len(),
                    worst(&most)
                ),
                all(most.len(), WITHIN, &most) && most.len() >= BUGS,
            ),
            Claim::new(
                format!("each by at most {MEDIAN} seeds in the median"),
                format!("{} for the slowest", worst(&medians)),
                all(medians.len(), MEDIAN, &medians),
            ),
        ]
    }

    fn section(&self, out: &mut String, _: &Path) -> Result<(), Error> {
        let firsts: Vec<String> = self.first_seeds.iter().map(u64::to_string).collect();
        paragraph(
            out,
            &format!(
                "Bugs that servers like this one have had, planted in our own code one at a time. How many seeds, of {} virtual minutes \
                 each, does it take the simulation to find it? Counted from {} first seeds ({}), {} at most.",
                self.virtual_minutes_each,
                len(firsts.len()),
                firsts.join(", "),
                self.seeds_at_most
            ),
        );
        let row = |bug: &Bug| {
            let mut row = vec![format!("`{bug}`"), bug.what().to_owned()];
            let Some(hunted) = self.of(*bug) else {
                row.extend(["not looked for".to_owned(), String::new(), String::new()]);
                return row;
            };
            let seeds: Vec<String> = hunted.seeds.iter().map(|seeds| or_dash(*seeds)).collect();
            row.extend([
                or_dash(hunted.median),
                seeds.join(", "),
                hunted.found_by.join(", "),
            ]);
            row
        };
        let head = [
            "bug",
            "what it does",
            "median seeds",
            "seeds from each first",
            "found by",
        ];
        table(out, &head, Bug::ALL.iter().map(row));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ::planted::Bug;

    use super::Planted;
    use crate::parts::shown;

    /// A recording in which each bug took so many seeds.
    fn kept(of: impl Fn(Bug) -> &'static str) -> String {
        let bugs: Vec<String> = Bug::ALL
            .into_iter()
            .map(|bug| format!(r#"{{"bug": "{bug}", {}, "found_by": ["INV-01"]}}"#, of(bug)))
            .collect();
        format!(
            r#"{{"first_seeds": [1, 1001, 2001], "seeds_at_most": 200, "virtual_minutes_each": 10, "bugs": [{}]}}"#,
            bugs.join(",")
        )
    }

    fn check(kept: &str, lines: &[String]) {
        let text = shown::<Planted>(kept);
        for line in lines {
            assert!(text.contains(line), "no {line:?} in\n{text}");
        }
    }

    #[test]
    fn all_bugs_are_found_in_time() {
        let all = Bug::ALL.len();
        check(
            &kept(|_| r#""seeds": [7, 2, 1], "median": 2"#),
            &[
                format!("begins: {all} of {all} found, the slowest by 7 seeds: true"),
                "median: 2 for the slowest: true".to_owned(),
                format!(
                    "| `free-on-abort` | {} | 2 | 7, 2, 1 | INV-01 |",
                    Bug::FreeOnAbort.what()
                ),
            ],
        );
    }

    #[test]
    fn one_that_is_missed_or_slow_is_no_evidence() {
        let all = Bug::ALL.len();
        let missed = kept(|bug| match bug {
            Bug::FreeOnAbort => r#""seeds": [null, 2, 1], "median": 2"#,
            _ => r#""seeds": [1, 1, 1], "median": 1"#,
        });
        let found = format!(
            "begins: {} of {all} found, the slowest by 1 seeds: false",
            all - 1
        );
        check(&missed, &[found, "| 2 | -, 2, 1 |".to_owned()]);
        let slow = kept(|bug| match bug {
            Bug::TimeoutFrees => r#""seeds": [60, 60, 60], "median": 60"#,
            _ => r#""seeds": [1, 1, 1], "median": 1"#,
        });
        check(&slow, &["median: 60 for the slowest: false".to_owned()]);
    }

    #[test]
    fn one_that_nobody_looked_for_is_told() {
        let none = r#"{"first_seeds": [1], "seeds_at_most": 200, "virtual_minutes_each": 10, "bugs": []}"#;
        let all = Bug::ALL.len();
        check(
            none,
            &[
                format!("0 of {all} found, the slowest by - seeds: false"),
                "| not looked for |".to_owned(),
            ],
        );
    }
}
