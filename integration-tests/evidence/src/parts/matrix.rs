//! Faults on real processes.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Part;
use crate::Stamp;
use crate::claim::Claim;
use crate::files::Error;
use crate::text::{count, len, ms, paragraph, table};

/// What `faults` writes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Matrix {
    recorded: Option<Stamp>,
    rounds: u64,
    allowance_ms: u64,
    build: String,
    cells: Vec<Cell>,
    not_here: Vec<(String, String)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Cell {
    id: String,
    what: String,
    setup: String,
    client_bound_ms: u64,
    back_bound_ms: u64,
    runs: Vec<Run>,
    worst_client_ms: Option<u64>,
    worst_back_ms: Option<u64>,
    verdict: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Run {
    client_ms: Option<u64>,
    back_ms: Option<u64>,
    broken: Option<String>,
}

/// The verdict on a cell that is as it must be.
const OK: &str = "ok";
/// How the verdict begins on a cell that the machine lacks something for.
const SKIPPED: &str = "skipped";

impl Matrix {
    fn verdicts(&self, is: impl Fn(&str) -> bool) -> usize {
        self.cells.iter().filter(|cell| is(&cell.verdict)).count()
    }
}

impl Part for Matrix {
    const TITLE: &'static str = "Faults on real processes";
    const RECIPE: &'static str = "just faults";
    const KEPT: &'static str = "faults.json";
    const ASKED: &'static str = "every cell within its bounds, more than once";

    fn stamps(&self) -> Vec<Option<&Stamp>> {
        vec![self.recorded.as_ref()]
    }

    fn claims(&self) -> Vec<Claim> {
        let ok = self.verdicts(|verdict| verdict == OK);
        let skipped = self.verdicts(|verdict| verdict.starts_with(SKIPPED));
        let wrong = self.cells.len() - ok - skipped;
        let mut found = format!(
            "{} of {} are, in {} rounds",
            len(ok),
            len(self.cells.len()),
            self.rounds
        );
        if skipped > 0 {
            found += &format!("; {} skipped", len(skipped));
        }
        if wrong > 0 {
            found += &format!("; {} are not", len(wrong));
        }
        let holds = ok > 0 && wrong == 0 && self.rounds > 1;
        vec![Claim::new(Self::ASKED, found, holds)]
    }

    fn section(&self, out: &mut String, _: &Path) -> Result<(), Error> {
        paragraph(
            out,
            &format!(
                "Gateway and workers as processes, KV over UCX, and a fault at a chosen moment: signals, cut and slow links, lost and late \
                 frames, full pools. `client` is the time from the fault until the client has what is promised to it, `blocks` until every \
                 block is back on every worker that lives, both in milliseconds, the worst of {} runs; the bound is in brackets, and {} ms \
                 beyond it are allowed for a machine on which all of that shares the cores ({} build).",
                self.rounds,
                count(self.allowance_ms),
                self.build
            ),
        );
        let row = |cell: &Cell| {
            let time = |worst, bound| format!("{} ({})", ms(worst), count(bound));
            vec![
                cell.id.clone(),
                cell.what.clone(),
                time(cell.worst_client_ms, cell.client_bound_ms),
                time(cell.worst_back_ms, cell.back_bound_ms),
                cell.verdict.clone(),
            ]
        };
        table(
            out,
            &[
                "cell",
                "fault, and what is demanded",
                "client",
                "blocks",
                "verdict",
            ],
            self.cells.iter().map(row),
        );
        let broken = self.cells.iter().flat_map(|cell| {
            let reasons = cell.runs.iter().filter_map(|run| run.broken.clone());
            reasons.map(|reason| vec![cell.id.clone(), reason])
        });
        let broken: Vec<_> = broken.collect();
        if !broken.is_empty() {
            table(out, &["broken", "why"], broken);
        }
        let row = |(row, why): &(String, String)| vec![row.clone(), why.clone()];
        table(out, &["not here", "why"], self.not_here.iter().map(row));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Matrix;
    use crate::parts::shown;

    fn cell(verdict: &str, broken: &str) -> String {
        format!(
            r#"{{"id": "F13.pulling", "what": "prefill is killed", "setup": "s", "client_bound_ms": 2700, "back_bound_ms": 4000,
            "runs": [{{"client_ms": 1500, "back_ms": null, "all_ms": 7, "note": "n", "broken": {broken}, "lacking": null}}],
            "worst_client_ms": 1500, "worst_back_ms": null, "verdict": "{verdict}"}}"#
        )
    }

    fn check(rounds: u32, cells: &[String], lines: &[&str]) {
        let kept = format!(
            r#"{{"rounds": {rounds}, "allowance_ms": 1000, "cores": 2, "build": "release", "cells": [{}],
            "not_here": [["F35", "needs a GPU"]]}}"#,
            cells.join(",")
        );
        let text = shown::<Matrix>(&kept);
        for line in lines {
            assert!(text.contains(line), "no {line:?} in\n{text}");
        }
    }

    #[test]
    fn cells_that_are_within_their_bounds() {
        check(
            3,
            &[cell("ok", "null"), cell("skipped: needs root", "null")],
            &[
                "more than once: 1 of 2 are, in 3 rounds; 1 skipped: true",
                "| F13.pulling | prefill is killed | 1,500 (2,700) | - (4,000) | ok |",
                "| F35 | needs a GPU |",
            ],
        );
        check(1, &[cell("ok", "null")], &["1 of 1 are, in 1 rounds: false"]);
    }

    #[test]
    fn cells_that_are_not() {
        check(
            3,
            &[
                cell("broken", r#""the answer has a gap""#),
                cell("late", "null"),
                cell("ok", "null"),
            ],
            &[
                "1 of 3 are, in 3 rounds; 2 are not: false",
                "| F13.pulling | the answer has a gap |",
            ],
        );
    }
}
