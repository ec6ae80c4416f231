//! A trace made by code, through everything. No figure here is a measurement: these are the mechanics.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::PathBuf;

use replay::{BLOCK_TOKENS, PolicyName, Request, Setup, Summary, replay, shared_cache};
use room::{BlockHash, Outcome};

/// Conversations side by side: each turn's prompt is the last one's and two blocks more. All begin with the same block.
fn conversations(count: u64, turns: u32) -> Vec<Request> {
    let mut requests = Vec::new();
    for turn in 0..turns {
        for conversation in 0..count {
            let blocks = 3 + 2 * turn;
            let name = |block: u32| match block {
                0 => BlockHash(0),
                block => BlockHash(u128::from(conversation + 1) << 32 | u128::from(block)),
            };
            requests.push(Request {
                arrival_us: (u64::from(turn) * count + conversation) * 400_000,
                prompt: blocks * BLOCK_TOKENS + 40,
                answer: 5 + (turn * 7) % 50,
                hashes: (0..blocks).map(name).collect(),
            });
        }
    }
    requests
}

fn small(policy: PolicyName) -> Setup {
    Setup {
        prefill: 3,
        decode: 2,
        blocks: 600,
        decode_blocks: 600,
        ..Setup::new(policy)
    }
}

fn figures(summary: &Summary) -> Summary {
    Summary {
        took_s: 0.0,
        ..summary.clone()
    }
}

#[test]
fn every_request_is_answered_whole_and_everything_comes_back() {
    let requests = conversations(12, 6);
    for policy in PolicyName::ALL {
        let (run, summary) = replay(&requests, &small(policy), 1.0);
        assert!(run.at_rest, "{policy:?}");
        assert_eq!(summary.gaps, 0);
        for (record, request) in run.records.iter().zip(&requests) {
            assert!(
                matches!(record.outcome, Some(Outcome::Completed(_))),
                "{policy:?}: {record:?}"
            );
            assert_eq!(record.count, request.answer);
            assert!(record.first_us().unwrap() > 0);
        }
        assert!(summary.good_share > 0.0 && summary.hit > 0.0 && summary.steps > 0);
    }
}

#[test]
fn the_same_trace_gives_the_same_figures() {
    let requests = conversations(8, 4);
    let one = replay(&requests, &small(PolicyName::Time), 1.0);
    let other = replay(&requests, &small(PolicyName::Time), 1.0);
    assert_eq!(one.0.records, other.0.records);
    assert_eq!(figures(&one.1), figures(&other.1));
}

#[test]
fn placement_by_time_finds_prefixes_and_spreads_load() {
    let requests = conversations(13, 6);
    let of = |policy| {
        // Prompts stay with prefill workers, so that there are no more caches than those.
        let mut setup = small(policy);
        setup.weights.decode_computes = false;
        // It is short: what was given of late has to count soon.
        setup.weights.lately = 0.2;
        replay(&requests, &setup, 1.0).1
    };
    let (plain, time) = (of(PolicyName::RoundRobin), of(PolicyName::Time));
    let shared = shared_cache(&requests, 3 * 600);
    assert!(
        plain.hit < time.hit && time.hit <= shared + 1e-9,
        "{plain:?} {time:?} {shared}"
    );
    assert!(time.hit > 0.95 * shared, "{} of {shared}", time.hit);
    assert!(time.prefill_imbalance < 2.0, "{time:?}");
    assert!(time.local == 0.0);
}

/// A burst that nobody could serve in time: some are refused at once, and those that are not are served in time.
#[test]
fn refusal_keeps_the_rest_in_time() {
    let mut requests = conversations(150, 1);
    for request in &mut requests {
        // A first few measure how fast it is.
        request.arrival_us = if request.arrival_us < 2_000_000 {
            request.arrival_us
        } else {
            2_000_000
        };
        request.prompt = 20 * BLOCK_TOKENS;
        request.answer = 60;
        request.hashes = request.hashes.iter().take(1).copied().collect();
    }
    // Answers are in nobody's way.
    let of = |policy| {
        let mut setup = Setup {
            decode: 12,
            ..small(policy)
        };
        setup.weights.decode_computes = false;
        replay(&requests, &setup, 1.0)
    };
    let (run, refusing) = of(PolicyName::TimeRefusing);
    let (_, patient) = of(PolicyName::Time);
    assert!(run.at_rest);
    assert!(refusing.refused_share > 0.0 && refusing.refused_share < 1.0);
    assert!(
        refusing.good_share > patient.good_share,
        "{} {}",
        refusing.good_share,
        patient.good_share
    );
}

#[test]
fn pools_that_are_too_small_end_in_order() {
    let requests = conversations(10, 5);
    let tight = Setup {
        blocks: 30,
        decode_blocks: 30,
        ..small(PolicyName::Time)
    };
    let (run, summary) = replay(&requests, &tight, 1.0);
    assert!(run.at_rest);
    assert!(run.records.iter().all(|record| record.outcome.is_some()));
    assert!(summary.hit < replay(&requests, &small(PolicyName::Time), 1.0).1.hit);
}

#[test]
fn a_shared_cache_holds_what_fits() {
    let requests = conversations(4, 3);
    let all: u32 = requests.iter().map(|r| r.prompt.div_ceil(BLOCK_TOKENS)).sum();
    // The first turn finds the common block; each later one all that the turn before had.
    let found = 3 + 4 * (3 + 5);
    let hit = shared_cache(&requests, 10_000);
    assert!((hit - f64::from(found) / f64::from(all)).abs() < 1e-12, "{hit}");
    assert!(shared_cache(&requests, 12) < hit);
}

#[test]
fn a_trace_is_read_and_a_page_is_written() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("replay");
    std::fs::create_dir_all(&folder).unwrap();
    let trace = folder.join("trace.jsonl");
    let line = |at: u32| {
        format!(
            r#"{{"timestamp": {}, "input_length": 600, "output_length": 4, "hash_ids": [0, {at}]}}"#,
            at * 1_000
        )
    };
    std::fs::write(&trace, (0..20).map(line).collect::<Vec<_>>().join("\n")).unwrap();
    let requests = replay::read(&trace).unwrap();
    assert_eq!(requests.len(), 20);
    let setup = small(PolicyName::Time);
    let by_speed: Vec<Summary> = [1.0, 2.0]
        .iter()
        .map(|speed| replay(&replay::at_speed(&requests, *speed), &setup, *speed).1)
        .collect();
    let stamp = evidence::Stamp::now();
    let sweep = replay::Sweep {
        trace: "trace.jsonl",
        requests: requests.len(),
        setup: &setup,
        stamp: &stamp,
        by_speed: &by_speed,
        by_pool: &[],
    };
    replay::publish(&sweep, &folder).unwrap();
    let page = std::fs::read_to_string(folder.join("README.md")).unwrap();
    assert!(page.contains("| time |") && page.contains("good.svg"));
    assert!(
        std::fs::read_to_string(folder.join("good.svg"))
            .unwrap()
            .contains("<svg")
    );
}
