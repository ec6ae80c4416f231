//! Faults on real processes.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Part, recorded};
use crate::Stamp;
use crate::claim::Claim;
use crate::files::Error;
use crate::text::{count, len, ms, paragraph, table};

/// What `faults` writes of some rows or cells alone.
const PART: &str = "faults-part.json";

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
    /// For one that was recorded again after the whole: when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recorded: Option<Stamp>,
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

    /// Cells that were recorded again later, in no fewer rounds and by the same build, take the place of their like.
    fn with(mut self, part: Self) -> Self {
        let date = |matrix: &Self| matrix.recorded.as_ref().map(|stamp| stamp.date.clone());
        if date(&part) <= date(&self) || part.rounds < self.rounds || part.build != self.build {
            return self;
        }
        for again in part.cells {
            if let Some(cell) = self.cells.iter_mut().find(|cell| cell.id == again.id) {
                *cell = Cell {
                    recorded: part.recorded.clone(),
                    ..again
                };
            }
        }
        self
    }
}

impl Part for Matrix {
    const TITLE: &'static str = "Faults on real processes";
    const RECIPE: &'static str = "just faults";
    const KEPT: &'static str = "faults.json";
    const ASKED: &'static str = "every cell within its bounds, more than once";

    fn recorded(target: &Path) -> Result<Option<Self>, Error> {
        let whole = recorded::<Self>(&target.join(Self::KEPT))?;
        let part = recorded::<Self>(&target.join(PART))?;
        Ok(match (whole, part) {
            (Some(whole), Some(part)) => Some(whole.with(part)),
            (whole, _) => whole,
        })
    }

    fn stamps(&self) -> Vec<Option<&Stamp>> {
        let mut stamps = vec![self.recorded.as_ref()];
        let again = self.cells.iter().filter(|cell| cell.recorded.is_some());
        stamps.extend(again.map(|cell| cell.recorded.as_ref()));
        stamps
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
    use super::{Matrix, Part};
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
    fn a_cell_that_was_recorded_again() {
        let matrix = |date: &str, rounds: u32, verdict: &str| -> Matrix {
            let stamp =
                format!(r#"{{"commit": "c", "changed": false, "date": "{date}", "cores": 2, "cpu": "x"}}"#);
            let cell = cell(verdict, "null");
            let kept = format!(
                r#"{{"recorded": {stamp}, "rounds": {rounds}, "allowance_ms": 1000, "build": "release", "cells": [{cell}], "not_here": []}}"#
            );
            serde_json::from_str(&kept).unwrap()
        };
        let whole = || matrix("2026-01-02", 2, "broken");
        let check = |part: Matrix, verdict: &str, stamps: usize| {
            let matrix = whole().with(part);
            assert_eq!(
                (matrix.cells[0].verdict.as_str(), matrix.stamps().len()),
                (verdict, stamps)
            );
        };
        check(matrix("2026-01-03", 2, "ok"), "ok", 2);
        check(matrix("2026-01-03", 1, "ok"), "broken", 1);
        check(matrix("2026-01-01", 2, "ok"), "broken", 1);
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
