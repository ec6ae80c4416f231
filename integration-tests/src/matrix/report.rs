//! What came of the cells: a line a run, a Markdown table, and JSON.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use evidence::Stamp;
use serde::Serialize;

use super::cell::{Bound, Cell, Measured};
use super::rows::NOT_HERE;
use super::runner::Options;

/// How the verdict on a cell begins that this machine lacks something for.
const SKIPPED: &str = "skipped:";

/// One run of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct RunResult {
    /// From the injection until the client had what is promised to it, in milliseconds.
    pub client_ms: Option<u64>,
    /// From the injection until every block was back, in milliseconds.
    pub back_ms: Option<u64>,
    /// The whole run, with the checks after it, in milliseconds.
    pub all_ms: u64,
    /// What else the cell says.
    pub note: String,
    /// What is not as it must be.
    pub broken: Option<String>,
    /// What the machine lacks for the cell, which did nothing therefore.
    pub lacking: Option<String>,
}

/// All runs of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Its id.
    pub id: String,
    /// Its row.
    pub row: String,
    /// What it does.
    pub what: String,
    /// The cluster it ran in.
    pub setup: String,
    /// Bound of the client's time, in milliseconds, without the allowance.
    pub client_bound_ms: u64,
    /// Bound of the blocks' time, in milliseconds, without the allowance.
    pub back_bound_ms: u64,
    /// The runs, in order.
    pub runs: Vec<RunResult>,
    /// The longest time of a client.
    pub worst_client_ms: Option<u64>,
    /// The longest time of the blocks.
    pub worst_back_ms: Option<u64>,
    /// `ok`, `late` (beyond a bound and the allowance), `broken`, `skipped: needs ...`, or `not run`.
    pub verdict: String,
}

/// The matrix.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Of which code, when, and on which machine.
    pub recorded: Stamp,
    /// How often each cell was run.
    pub rounds: u32,
    /// What is added to every bound, in milliseconds.
    pub allowance_ms: u64,
    /// Which build: `release` or `debug`.
    pub build: &'static str,
    /// The cells, in order.
    pub cells: Vec<Summary>,
    /// Rows that real processes are not tested for, and why.
    pub not_here: Vec<(&'static str, &'static str)>,
}

impl RunResult {
    pub(super) fn of(measured: &Measured, all: Duration) -> Self {
        Self {
            client_ms: measured.client.map(ms),
            back_ms: measured.back.map(ms),
            all_ms: ms(all),
            note: measured.note.clone(),
            broken: None,
            lacking: measured.lacking.clone(),
        }
    }

    pub(super) fn broken(why: String, all: Duration) -> Self {
        Self {
            client_ms: None,
            back_ms: None,
            all_ms: ms(all),
            note: String::new(),
            broken: Some(why),
            lacking: None,
        }
    }
}

impl Report {
    pub(super) fn new(cells: &[Cell], options: Options) -> Self {
        Self {
            recorded: Stamp::now(),
            rounds: options.rounds,
            allowance_ms: ms(options.allowance),
            build: if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            },
            cells: cells.iter().map(Summary::new).collect(),
            not_here: NOT_HERE.to_vec(),
        }
    }

    /// Takes in a run, and tells it.
    pub(super) fn add(&mut self, cell: &Cell, result: RunResult) {
        let allowance_ms = self.allowance_ms;
        let Some(summary) = self.cells.iter_mut().find(|summary| summary.id == cell.id) else {
            return;
        };
        summary.runs.push(result);
        summary.judge(allowance_ms);
        println!("{}", summary.last());
    }

    /// Those that are not as they must be.
    #[must_use]
    pub fn failed(&self) -> Vec<&Summary> {
        let fine = |cell: &&Summary| cell.verdict == "ok" || cell.verdict.starts_with(SKIPPED);
        self.cells.iter().filter(|cell| !fine(cell)).collect()
    }

    /// As a Markdown table.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "Each cell {} times, {} build, {} cores. A cell is late when a time is beyond its bound by more than {} ms.\n\n",
            self.rounds, self.build, self.recorded.cores, self.allowance_ms
        );
        text.push_str("| cell | what | bound: client / blocks, ms | client, ms | all blocks back, ms | worst | verdict |\n");
        text.push_str("|---|---|---|---|---|---|---|\n");
        for cell in &self.cells {
            cell.markdown(&mut text);
        }
        text.push_str("\nNot tested on real processes:\n\n");
        for (row, why) in &self.not_here {
            // Writing to a String does not fail.
            let _ = writeln!(text, "* {row}: {why}");
        }
        text
    }

    /// Writes `NAME.json` and `NAME.md` into a folder.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&self, folder: &Path, name: &str) -> std::io::Result<()> {
        let json = serde_json::to_string_pretty(self)?;
        std::fs::write(folder.join(format!("{name}.json")), json + "\n")?;
        std::fs::write(folder.join(format!("{name}.md")), self.markdown())
    }
}

impl Summary {
    fn new(cell: &Cell) -> Self {
        let Bound { client, back } = cell.bound;
        Self {
            id: cell.id.to_owned(),
            row: cell.row().to_owned(),
            what: cell.what.to_owned(),
            setup: cell.setup.name.to_owned(),
            client_bound_ms: ms(client),
            back_bound_ms: ms(back),
            runs: Vec::new(),
            worst_client_ms: None,
            worst_back_ms: None,
            verdict: "not run".to_owned(),
        }
    }

    fn judge(&mut self, allowance_ms: u64) {
        self.worst_client_ms = self.runs.iter().filter_map(|run| run.client_ms).max();
        self.worst_back_ms = self.runs.iter().filter_map(|run| run.back_ms).max();
        let beyond = |worst: Option<u64>, bound_ms: u64| worst.is_some_and(|ms| ms > bound_ms + allowance_ms);
        let late = beyond(self.worst_client_ms, self.client_bound_ms)
            || beyond(self.worst_back_ms, self.back_bound_ms);
        let broken = self.runs.iter().any(|run| run.broken.is_some());
        let lacking = self.runs.iter().find_map(|run| run.lacking.as_ref());
        self.verdict = match (broken, late, lacking) {
            (true, ..) => "broken".to_owned(),
            (_, true, _) => "late".to_owned(),
            (.., Some(lacking)) => format!("{SKIPPED} needs {lacking}"),
            _ => "ok".to_owned(),
        };
    }

    /// The last run, in one line.
    fn last(&self) -> String {
        let Some(run) = self.runs.last() else {
            return format!("{}: not run", self.id);
        };
        let (id, n) = (&self.id, self.runs.len());
        if let Some(why) = &run.broken {
            return format!("{id:<28} #{n}  BROKEN: {why}");
        }
        format!(
            "{id:<28} #{n}  client {:>6} ms of {:>6}  blocks {:>6} ms of {:>6}  ({} ms in all)  {}  {}",
            or_dash(run.client_ms),
            self.client_bound_ms,
            or_dash(run.back_ms),
            self.back_bound_ms,
            run.all_ms,
            self.verdict,
            run.note,
        )
    }

    fn markdown(&self, text: &mut String) {
        let list = |part: fn(&RunResult) -> Option<u64>| {
            let all: Vec<String> = self.runs.iter().map(|run| or_dash(part(run))).collect();
            all.join(", ")
        };
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} / {} | {} | {} | {} / {} | {} |",
            self.id,
            self.what,
            self.client_bound_ms,
            self.back_bound_ms,
            list(|run| run.client_ms),
            list(|run| run.back_ms),
            or_dash(self.worst_client_ms),
            or_dash(self.worst_back_ms),
            self.verdict,
        );
    }
}

fn or_dash(ms: Option<u64>) -> String {
    ms.map_or_else(|| "-".to_owned(), |ms| ms.to_string())
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
