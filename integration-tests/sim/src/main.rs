//! Runs simulations by their seeds: one, many, or one again in fresh processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use evidence::Stamp;
use serde::Serialize;
use sim::{Hunted, Spans, Totals, hunt};

#[derive(Parser)]
#[command(about = "Simulates a whole cluster under faults, from a seed")]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// One seed, in detail.
    One {
        seed: u64,
        /// Virtual minutes.
        #[arg(long, default_value_t = 10)]
        minutes: u64,
        /// The whole trace goes to standard error.
        #[arg(long)]
        trace: bool,
        /// Only the number of the trace is printed.
        #[arg(long)]
        digest: bool,
    },
    /// Many seeds, on all processors.
    Many {
        count: u64,
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        from: u64,
        /// Virtual minutes of each.
        #[arg(long, default_value_t = 10)]
        minutes: u64,
        /// Where the figures are written to, as JSON.
        #[arg(long)]
        json: Option<PathBuf>,
    },
    /// Bugs planted in the product on purpose: how many seeds it takes to find each.
    Planted {
        /// Which; all if none is named.
        bugs: Vec<planted::Bug>,
        /// From how many first seeds each is looked for; they are a thousand apart.
        #[arg(long, default_value_t = 5)]
        starts: u64,
        /// Seeds at most, from each.
        #[arg(long, default_value_t = 200)]
        most: u64,
        /// Virtual minutes of each.
        #[arg(long, default_value_t = 10)]
        minutes: u64,
        /// Where the figures are written to, as JSON.
        #[arg(long)]
        json: Option<PathBuf>,
    },
    /// Seeds twice, each time in a fresh process: their traces must be the same (INV-12).
    Same {
        count: u64,
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        from: u64,
        /// Virtual minutes of each.
        #[arg(long, default_value_t = 10)]
        minutes: u64,
        /// Where the figures are written to, as JSON.
        #[arg(long)]
        json: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    let ok = match Args::parse().what {
        What::Planted {
            bugs,
            starts,
            most,
            minutes,
            json,
        } => hunted(&bugs, starts, most, minutes, json.as_deref()),
        What::One {
            seed,
            minutes,
            trace,
            digest,
        } => one(seed, minutes, trace, digest),
        What::Many {
            count,
            from,
            minutes,
            json,
        } => many(from, count, minutes, json.as_deref()),
        What::Same {
            count,
            from,
            minutes,
            json,
        } => same(from, count, minutes, json.as_deref()),
    };
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn spans(minutes: u64) -> Spans {
    Spans::of(Duration::from_secs(minutes * 60))
}

fn one(seed: u64, minutes: u64, trace: bool, digest: bool) -> bool {
    let began = Instant::now();
    let report = sim::run(seed, spans(minutes), trace);
    if digest {
        println!("{:0DIGEST_DIGITS$x}", report.digest);
        return report.violations.is_empty();
    }
    println!(
        "seed {seed}: {minutes} virtual minutes in {} ms, {} requests, {} rooms, {} events, trace {:016x}",
        began.elapsed().as_millis(),
        report.requests,
        report.rooms,
        report.events,
        report.digest
    );
    for (outcome, count) in &report.outcomes {
        println!("{count:8}  {outcome}");
    }
    for (kind, count) in &report.faults {
        println!("{count:8}  {kind}");
    }
    match report.quiet_after {
        Some(after) => println!("everything was back {} ms after the healing", after.as_millis()),
        None => println!("not everything came back"),
    }
    let (before, after) = report.probed;
    println!(
        "the same requests took {} ms before the faults and {} ms after the healing",
        before.as_millis(),
        after.as_millis()
    );
    report.broken().iter().for_each(|broken| println!("{broken}"));
    report.violations.is_empty()
}

/// What many seeds came to, as it is kept.
#[derive(Serialize)]
struct Recorded {
    recorded: Stamp,
    first_seed: u64,
    virtual_minutes_each: u64,
    wall_seconds: f64,
    #[serde(flatten)]
    totals: Totals,
}

fn many(from: u64, count: u64, minutes: u64, json: Option<&Path>) -> bool {
    let (stamp, began) = (Stamp::now(), Instant::now());
    let totals = sim::run_many(from..from + count, spans(minutes), |report| {
        report.broken().iter().for_each(|broken| println!("{broken}"));
    });
    let holds = totals.broken.is_empty();
    let wall = began.elapsed();
    println!(
        "{} seeds, {:.1} cluster-hours in {:.0} s: {} requests, {} rooms, {} faults, {} seeds broken",
        totals.seeds,
        totals.cluster_hours,
        wall.as_secs_f64(),
        totals.requests,
        totals.rooms,
        totals.faults,
        totals.broken.len()
    );
    for (kind, count) in &totals.faults_by_kind {
        println!("{count:10}  {kind}");
    }
    let recorded = Recorded {
        recorded: stamp,
        first_seed: from,
        virtual_minutes_each: minutes,
        wall_seconds: wall.as_secs_f64(),
        totals,
    };
    keep(json, &recorded) && holds
}

/// Hexadecimal ones, of a trace's number.
const DIGEST_DIGITS: usize = 16;

/// Seeds in fresh processes, as it is kept.
#[derive(Serialize)]
struct Repeated {
    recorded: Stamp,
    first_seed: u64,
    virtual_minutes_each: u64,
    seeds: u64,
    differ: Vec<u64>,
}

fn same(from: u64, count: u64, minutes: u64, json: Option<&Path>) -> bool {
    let recorded = Stamp::now();
    let digest = |seed: u64| {
        let program = std::env::current_exe().ok()?;
        let arguments = [
            "one",
            &seed.to_string(),
            "--digest",
            "--minutes",
            &minutes.to_string(),
        ];
        let output = Command::new(program).args(arguments).output().ok()?;
        let digest = String::from_utf8(output.stdout).ok()?;
        // One that ended before it came to that has none.
        (digest.trim().len() == DIGEST_DIGITS).then_some(digest)
    };
    let mut differ = Vec::new();
    for seed in from..from + count {
        let (first, second) = (digest(seed), digest(seed));
        if first.is_none() || first != second {
            println!("seed {seed}: two processes, two traces: {first:?} and {second:?}");
            differ.push(seed);
        }
    }
    println!(
        "{count} seeds, each in two fresh processes: {} differ",
        differ.len()
    );
    let repeated = Repeated {
        recorded,
        first_seed: from,
        virtual_minutes_each: minutes,
        seeds: count,
        differ,
    };
    keep(json, &repeated) && repeated.differ.is_empty()
}

/// What came of looking for planted bugs, as it is kept.
#[derive(Serialize)]
struct HuntedAll {
    recorded: Stamp,
    first_seeds: Vec<u64>,
    seeds_at_most: u64,
    virtual_minutes_each: u64,
    bugs: Vec<Hunted>,
}

fn hunted(bugs: &[planted::Bug], starts: u64, most: u64, minutes: u64, json: Option<&Path>) -> bool {
    let bugs = if bugs.is_empty() {
        &planted::Bug::ALL[..]
    } else {
        bugs
    };
    let stamp = Stamp::now();
    let firsts: Vec<u64> = (0..starts).map(|start| 1 + start * 1_000).collect();
    println!(
        "{:28} {:>6}  seeds from {firsts:?}; found by",
        "planted bug", "median"
    );
    let row = |hunted: &Hunted| {
        let seeds = |seeds: &Option<u64>| seeds.map_or_else(|| "-".to_owned(), |seeds| seeds.to_string());
        let all: Vec<String> = hunted.seeds.iter().map(seeds).collect();
        let by: Vec<&str> = hunted.found_by.iter().copied().collect();
        println!(
            "{:28} {:>6}  {}; {}",
            hunted.bug,
            seeds(&hunted.median),
            all.join(" "),
            by.join(" ")
        );
    };
    let all = hunt(bugs, &firsts, most, spans(minutes), row);
    println!(
        "{}=BUG just sim SEED shows one of them in a seed",
        planted::VARIABLE
    );
    let found = all.iter().all(Hunted::is_found);
    let recorded = HuntedAll {
        recorded: stamp,
        first_seeds: firsts,
        seeds_at_most: most,
        virtual_minutes_each: minutes,
        bugs: all,
    };
    keep(json, &recorded) && found
}

fn keep(json: Option<&Path>, what: &impl Serialize) -> bool {
    let Some(path) = json else { return true };
    let written = serde_json::to_vec_pretty(what)
        .map_err(std::io::Error::from)
        .and_then(|text| fs::write(path, text));
    if let Err(error) = &written {
        eprintln!("{}: {error}", path.display());
    }
    written.is_ok()
}
