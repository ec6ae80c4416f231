//! Many seeds, and the same seed twice.

use std::process::Command;

use sim::{Said, Spans, TEN_MINUTES, Totals, run_many};

/// What has to be among the faults of a hundred seeds, each at least once.
const FAULTS: [&str; 41] = [
    "client leaves",
    "clock leap",
    "data path cut",
    "datagram doubled",
    "datagram lost",
    "datagram overtaken",
    "engine failure",
    "engine stuck",
    "frame late, overtaken by others",
    "frame lost: a digest",
    "frame lost: an abort",
    "frame lost: any other",
    "frame sent again later",
    "frame sent twice",
    "freeze and thaw",
    "gateway crash",
    "gateway restart in order",
    "kv: block corrupt",
    "kv: bytes land after a forced close",
    "kv: bytes land again after a forced close",
    "kv: forced close takes long",
    "kv: offer withdrawn under a read",
    "kv: read fails at once",
    "kv: read fails half-way",
    "kv: read late",
    "kv: read of a stale generation",
    "kv: read slow",
    "kv: read with a wrong capability",
    "kv: send completes late",
    "kv: send completes, nothing delivered",
    "link cut both ways",
    "link cut one way",
    "network storm",
    "operator aborts",
    "owner panics",
    "rush of requests",
    "slow worker",
    "transfer failure",
    "worker crash",
    "worker loses power",
    "worker restart in order",
];

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
        report.broken().iter().for_each(|broken| println!("{broken}"));
    });
    report(&totals);
    assert!(totals.broken.is_empty(), "broken: {:#?}", totals.broken);
    // Or nothing was tested.
    assert!(totals.rooms > 10_000 && totals.faults > 10_000, "{totals:?}");
    for kind in FAULTS {
        assert!(totals.faults_by_kind.contains_key(kind), "no {kind}");
    }
    for kind in Said::NAMES {
        assert!(totals.heard.contains_key(kind), "nobody has heard: {kind}");
    }
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
