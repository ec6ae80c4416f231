//! Runs the fault matrix, or the rows and cells that are named, and writes its tables beside the program.
//!
//! `faults [--rounds N] [--list] [ROW-OR-CELL ...]`

use std::process::ExitCode;
use std::time::Duration;

use integration_tests::matrix::{self, Options};

const ALLOWANCE: Duration = Duration::from_millis(1_000);
const ROUNDS: u32 = 3;

#[tokio::main]
async fn main() -> ExitCode {
    let mut options = Options {
        rounds: ROUNDS,
        allowance: ALLOWANCE,
    };
    let mut chosen = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--list" => return list(),
            "--rounds" => match arguments.next().and_then(|rounds| rounds.parse().ok()) {
                Some(rounds) => options.rounds = rounds,
                None => return wrong("--rounds needs a number"),
            },
            _ => chosen.push(argument),
        }
    }
    let cells = matrix::chosen(&chosen);
    if cells.is_empty() {
        return wrong("no cell is called so: --list says which there are");
    }
    let report = matrix::run(&cells, options).await;
    println!("\n{}", report.markdown());
    // A part of the matrix does not take the place of the whole.
    let name = if chosen.is_empty() {
        "faults"
    } else {
        "faults-part"
    };
    let folder = integration_tests::target();
    if let Err(error) = report.write(&folder, name) {
        return wrong(&format!("{}: {error}", folder.display()));
    }
    println!("written: {0}/{name}.json and {0}/{name}.md", folder.display());
    for failed in report.failed() {
        println!("{}: {}", failed.id, failed.verdict);
    }
    if report.failed().is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn list() -> ExitCode {
    for cell in matrix::all() {
        println!("{:<28} {}", cell.id, cell.what);
    }
    ExitCode::SUCCESS
}

fn wrong(what: &str) -> ExitCode {
    eprintln!("faults: {what}");
    ExitCode::FAILURE
}
