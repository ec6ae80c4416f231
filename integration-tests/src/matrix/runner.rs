//! Runs cells: one cluster for those of a setup, as long as none of them breaks it.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::cell::{Cell, Measured};
use super::ctx::Ctx;
use super::invariants;
use super::report::{Report, RunResult};

/// Longer than any cell may take in all.
const PATIENCE: Duration = Duration::from_secs(300);

/// How the matrix is run.
#[derive(Copy, Clone, Debug)]
pub struct Options {
    /// How often each cell is run.
    pub rounds: u32,
    /// Added to every bound, for a machine of few cores on which clients, gateway and workers share them.
    pub allowance: Duration,
}

/// Runs these cells and says what came of it. Each run is also told as it ends, in one line.
pub async fn run(cells: &[Cell], options: Options) -> Report {
    let mut report = Report::new(cells, options);
    let mut setups: Vec<&str> = Vec::new();
    for cell in cells {
        if !setups.contains(&cell.setup.name) {
            setups.push(cell.setup.name);
        }
    }
    for setup in setups {
        // Ends with its last cell: the next setup has the machine for itself.
        let mut cluster = None;
        for _ in 0..options.rounds {
            for cell in cells.iter().filter(|cell| cell.setup.name == setup) {
                let result = one(cell, &mut cluster).await;
                report.add(cell, result);
            }
        }
    }
    report
}

/// One run. After one that fails nothing of its cluster is used again.
async fn one(cell: &Cell, cluster: &mut Option<Ctx>) -> RunResult {
    let started = Instant::now();
    let mut ctx = match cluster.take() {
        Some(ctx) => ctx,
        None => match tokio::spawn((cell.setup.start)()).await {
            Ok(ctx) => ctx,
            Err(panic) => {
                return RunResult::broken(format!("no cluster: {}", text(panic)), started.elapsed());
            }
        },
    };
    let run = cell.run;
    // A task of its own: a panic is its result, and the cluster ends with it.
    let ran = tokio::spawn(async move {
        let disturbed = async {
            let measured: Measured = run(&mut ctx).await;
            invariants::check(&mut ctx).await;
            measured
        };
        let measured = timeout(PATIENCE, disturbed).await;
        let measured = measured.unwrap_or_else(|_| panic!("it does not come to an end in {PATIENCE:?}"));
        (ctx, measured)
    });
    match ran.await {
        Ok((ctx, measured)) => {
            *cluster = Some(ctx);
            RunResult::of(&measured, started.elapsed())
        }
        Err(panic) => RunResult::broken(text(panic), started.elapsed()),
    }
}

/// What a task said as it panicked.
fn text(error: tokio::task::JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else {
        return "the run was ended from outside".to_owned();
    };
    let said = panic.downcast_ref::<String>().cloned();
    let said = said.or_else(|| panic.downcast_ref::<&str>().map(|said| (*said).to_owned()));
    said.unwrap_or_else(|| "a panic without words".to_owned())
}
