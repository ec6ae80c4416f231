//! What a sweep came to, as tables and curves.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use evidence::Stamp;

use crate::plot::{Curve, Graph};
use crate::report::Summary;
use crate::setup::{PolicyName, Setup};

/// From which share on a cluster is said to serve its load.
const SERVED: f64 = 0.9;

/// What a sweep found.
pub struct Sweep<'a> {
    /// The trace's file name.
    pub trace: &'a str,
    /// Requests in it.
    pub requests: usize,
    /// The cluster; its policy does not matter.
    pub setup: &'a Setup,
    /// Of which code and machine.
    pub stamp: &'a Stamp,
    /// All replays at different speeds.
    pub by_speed: &'a [Summary],
    /// Replays with different pools: blocks of a worker's, share of hits of one shared cache as large as all of them, and the replays.
    pub by_pool: &'a [(u32, f64, Vec<Summary>)],
}

/// Writes `README.md` and the curves into a folder.
///
/// # Errors
/// When something cannot be written.
pub fn publish(sweep: &Sweep<'_>, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut page = head(sweep);
    for (file, graph) in graphs(sweep) {
        if graph.curves.iter().any(|curve| !curve.points.is_empty()) {
            graph.draw(&folder.join(&file))?;
            let _ = writeln!(page, "![{}]({file})\n", graph.title);
        }
    }
    page.push_str(&tables(sweep));
    fs::write(folder.join("README.md"), page).context("cannot write the page")
}

/// The tables alone.
#[must_use]
pub fn tables(sweep: &Sweep<'_>) -> String {
    let mut page = String::new();
    if !sweep.by_speed.is_empty() {
        page.push_str("## By load\n\n");
        page.push_str(&by_speed(sweep.by_speed));
        page.push_str(&served(sweep.by_speed));
    }
    if !sweep.by_pool.is_empty() {
        page.push_str("## By size of the prefill workers' caches\n\n");
        page.push_str(&by_pool(sweep.by_pool));
    }
    page
}

fn head(sweep: &Sweep<'_>) -> String {
    let (setup, stamp) = (sweep.setup, sweep.stamp);
    let changed = if stamp.changed { " and changes" } else { "" };
    let ms = |us: u64| us / 1_000;
    format!(
        "# A trace, replayed\n\nMade by `just replay`; nothing here is typed by hand. `{trace}` ({requests} requests) through the \
         product's own rooms, desk, hosts, ledgers and schedulers in virtual time: {prefill} prefill workers with {blocks} blocks of \
         512 tokens each, {decode} decode workers with {decode_blocks}; steps take what DistServe's published profiles of A100 say \
         ({model:?}); {gb} GB/s of KV at each end. *Good* is a whole answer whose first token came within {first} ms and whose tokens \
         were at most {between} ms apart on average, the time to move the KV included. Shares are of all requests that came, refused \
         ones included. *Imbalance* is the time in steps of the busiest worker over that of the mean one.\n\n\
         Code `{commit}`{changed}, {date} UTC, {cores} cores, {cpu}.\n\n",
        trace = sweep.trace,
        requests = sweep.requests,
        prefill = setup.prefill,
        blocks = setup.blocks,
        decode = setup.decode,
        decode_blocks = setup.decode_blocks,
        model = setup.model,
        gb = setup.kv_bytes_per_s / 1_000_000_000,
        first = ms(setup.first_token_us),
        between = ms(setup.between_tokens_us),
        commit = stamp.commit,
        date = stamp.date,
        cores = stamp.cores,
        cpu = stamp.cpu,
    )
}

fn by_speed(summaries: &[Summary]) -> String {
    let mut table = "| speed | requests/s | policy | good/s | good | refused | late | slow | hit | imbalance prefill, decode | busy \
                     prefill, decode | on decode | first token ms p50 / p90 / p99 | between tokens ms p50 / p90 / p99 | tried again | s |\n\
                     |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for s in summaries {
        let [first, between] = [s.first_ms, s.between_ms];
        let _ = writeln!(
            table,
            "| {} | {:.2} | {} | {:.2} | {} | {} | {} | {} | {} | {:.2}, {:.2} | {}, {} | {} | {:.0} / {:.0} / {:.0} | {:.1} / {:.1} / \
             {:.1} | {} | {:.0} |",
            s.speed,
            s.offered,
            s.policy,
            s.good,
            percent(s.good_share),
            percent(s.refused_share),
            percent(s.late_share),
            percent(s.slow_share),
            percent(s.hit),
            s.prefill_imbalance,
            s.decode_imbalance,
            percent(s.prefill_busy),
            percent(s.decode_busy),
            percent(s.local),
            first[0],
            first[1],
            first[2],
            between[0],
            between[1],
            between[2],
            s.retries,
            s.took_s,
        );
    }
    table.push('\n');
    table
}

/// The load up to which a policy serves nine in ten in time, between the loads tested by a straight line.
fn served(summaries: &[Summary]) -> String {
    let best = PolicyName::ALL.map(|policy| (policy.name(), served_by(summaries, policy)));
    let of = |name: PolicyName| best.iter().find(|(other, _)| *other == name.name());
    let plain = of(PolicyName::RoundRobin).and_then(|(_, load)| *load);
    let mut table =
        "| policy | requests/s at which nine in ten are good | of round-robin's |\n|---|---|---|\n"
            .to_owned();
    for (name, load) in &best {
        let Some(load) = load else { continue };
        let over = plain.map_or("-".to_owned(), |plain| format!("{:.2}", load / plain));
        let _ = writeln!(table, "| {name} | {load:.2} | {over} |");
    }
    table.push('\n');
    table
}

fn served_by(summaries: &[Summary], policy: PolicyName) -> Option<f64> {
    let mut served = None;
    let mut before: Option<&Summary> = None;
    for at in summaries.iter().filter(|s| s.is_of(policy)) {
        if at.good_share >= SERVED {
            served = Some(at.offered);
        } else if let Some(last) = before.filter(|last| last.good_share >= SERVED) {
            let part = (last.good_share - SERVED) / (last.good_share - at.good_share);
            served = Some(last.offered + part * (at.offered - last.offered));
        }
        before = Some(at);
    }
    served
}

fn by_pool(pools: &[(u32, f64, Vec<Summary>)]) -> String {
    let mut table = "| blocks a worker | one shared cache | policy | hit | of the shared cache's | imbalance |\n|---|---|---|---|---|---|\n"
        .to_owned();
    for (blocks, shared, summaries) in pools {
        for s in summaries {
            let of_shared = if *shared > 0.0 { s.hit / shared } else { 0.0 };
            let _ = writeln!(
                table,
                "| {blocks} | {} | {} | {} | {} | {:.2} |",
                percent(*shared),
                s.policy,
                percent(s.hit),
                percent(of_shared),
                s.prefill_imbalance,
            );
        }
    }
    table.push('\n');
    table
}

fn graphs(sweep: &Sweep<'_>) -> Vec<(String, Graph)> {
    let load = "requests a second";
    let over_load = |file: &str, title: &str, y: &str, of: fn(&Summary) -> f64| {
        let curve = |policy: PolicyName| Curve {
            name: policy.name().to_owned(),
            points: sweep
                .by_speed
                .iter()
                .filter(|s| s.is_of(policy))
                .map(|s| (s.offered, of(s)))
                .collect(),
        };
        let graph = Graph {
            title: title.to_owned(),
            x: load.to_owned(),
            y: y.to_owned(),
            log_x: false,
            curves: PolicyName::ALL.map(curve).into(),
        };
        (file.to_owned(), graph)
    };
    let mut graphs = vec![
        over_load("good.svg", "Served in time", "requests a second", |s| s.good),
        over_load("share.svg", "Share served in time", "of all requests", |s| {
            s.good_share
        }),
        over_load("first.svg", "Time to the first token, nine in ten", "ms", |s| {
            s.first_ms[1]
        }),
        over_load("between.svg", "Time between tokens, nine in ten", "ms", |s| {
            s.between_ms[1]
        }),
        over_load(
            "imbalance.svg",
            "Busiest prefill worker over the mean",
            "ratio",
            |s| s.prefill_imbalance,
        ),
    ];
    graphs.push(("hit.svg".to_owned(), by_pool_graph(sweep)));
    graphs
}

fn by_pool_graph(sweep: &Sweep<'_>) -> Graph {
    let shared = Curve {
        name: "one shared cache".to_owned(),
        points: sweep
            .by_pool
            .iter()
            .map(|(blocks, hit, _)| (f64::from(*blocks), *hit))
            .collect(),
    };
    let curve = |policy: PolicyName| Curve {
        name: policy.name().to_owned(),
        points: sweep
            .by_pool
            .iter()
            .flat_map(|(blocks, _, all)| all.iter().map(|s| (f64::from(*blocks), s)))
            .filter(|(_, s)| s.is_of(policy))
            .map(|(blocks, s)| (blocks, s.hit))
            .collect(),
    };
    let policies = PolicyName::ALL
        .into_iter()
        .map(curve)
        .filter(|curve| !curve.points.is_empty());
    Graph {
        title: "Blocks of prompts that were cached".to_owned(),
        x: "blocks of a prefill worker's cache".to_owned(),
        y: "of all blocks".to_owned(),
        log_x: true,
        curves: policies
            .chain([shared])
            .filter(|curve| !curve.points.is_empty())
            .collect(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
