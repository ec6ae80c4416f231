//! Many seeds, and the same seed twice.

use std::process::Command;

use sim::{Spans, TEN_MINUTES, Totals, run_many};

fn report(totals: &Totals) {
    println!(
        "{} seeds: {:.1} cluster-hours, {} requests, {} rooms, {} faults; everything was back {} ms after the healing at the latest (seed {})",
        totals.seeds,
        totals.cluster_hours,
        totals.requests,
        totals.rooms,
        totals.faults,
        totals.slowest_rest_ms,
        totals.slowest_rest_seed
    );
    for (kind, count) in &totals.faults_by_kind {
        println!("{count:10}  {kind}");
    }
}

#[test]
fn a_hundred_seeds_of_ten_minutes_break_no_invariant() {
    let totals = run_many(1..101, Spans::of(TEN_MINUTES), |report| {
        for violation in report.violations.iter().take(3) {
            println!("just sim {}: {violation}", report.seed);
        }
    });
    report(&totals);
    assert!(totals.broken.is_empty(), "broken: {:#?}", totals.broken);
    // Or nothing was tested.
    assert!(totals.rooms > 10_000 && totals.faults > 10_000, "{totals:?}");
}

#[test]
fn a_seed_has_the_same_trace_in_every_process() {
    let digest = |seed: u64| {
        let output = Command::new(env!("CARGO_BIN_EXE_sim"))
            .args(["one", &seed.to_string(), "--digest", "--minutes", "3"])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let mut all = Vec::new();
    for seed in 1..=4 {
        let first = digest(seed);
        assert_eq!(first.trim().len(), 16, "seed {seed}: {first}");
        assert_eq!(first, digest(seed), "INV-12: seed {seed} in two processes");
        all.push(first);
    }
    all.dedup();
    assert_eq!(all.len(), 4, "other seeds have other traces");
}
