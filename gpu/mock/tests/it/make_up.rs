//! What the mock pretends: lengths of answers, durations, log-probabilities, identity.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::{Backend, Command, Engine, EngineConfig, EngineEvent, FinishReason, PoolShape, Sampling};
use mock::{Answer, END_TOKEN, Latency, MockBackend, MockConfig, no_sleep};

use crate::drive::{Drive, alone, prompt, spec};

fn answering(answer: Answer) -> MockConfig {
    MockConfig {
        answer,
        ..MockConfig::default()
    }
}

#[test]
fn an_answer_ends_where_it_is_told_to() {
    let answer = alone(&answering(Answer::After(6)), spec(1, &prompt(1, 9), 50));
    assert_eq!(answer.len(), 7);
    assert_eq!(answer.iter().position(|&token| token == END_TOKEN), Some(6));
    let mut ignoring = spec(1, &prompt(1, 9), 50);
    ignoring.ignore_eos = true;
    let answer = alone(&answering(Answer::After(6)), ignoring);
    assert_eq!((answer.len(), answer.contains(&END_TOKEN)), (50, false));
}

#[test]
fn lengths_between_two_depend_on_the_prompt_alone() {
    let lengths: Vec<usize> = (0..40)
        .map(|seed| alone(&answering(Answer::Between(2, 5)), spec(1, &prompt(seed, 9), 50)).len() - 1)
        .collect();
    for length in 2..=5 {
        assert!(lengths.contains(&length), "{lengths:?}");
    }
    assert!(
        lengths.iter().all(|length| (2..=5).contains(length)),
        "{lengths:?}"
    );
}

#[test]
fn the_end_token_finishes_the_sequence() {
    let mut drive = Drive::new(answering(Answer::After(2)), EngineConfig::default());
    drive.start(spec(1, &prompt(1, 9), 50));
    drive.run();
    let last = drive.reports().flat_map(|report| &report.tokens).last().unwrap();
    assert_eq!(
        (last.token, last.finish, last.left),
        (END_TOKEN, Some(FinishReason::Stop), true)
    );
    assert_eq!(last.position, 11);
    assert_eq!(drive.engine.step(), None, "it has left");
}

#[test]
fn seeds_matter_only_when_sampling() {
    let with = |temperature, seed| {
        let mut spec = spec(1, &prompt(1, 9), 10);
        spec.sampling = Sampling {
            temperature,
            seed,
            ..Sampling::default()
        };
        alone(&MockConfig::default(), spec)
    };
    assert_eq!(with(0.0, 1), with(0.0, 2));
    assert_eq!(with(1.0, 1), with(1.0, 1));
    assert_ne!(with(1.0, 1), with(1.0, 2));
}

#[test]
fn log_probabilities_come_when_asked_for() {
    let mut drive = Drive::new(MockConfig::default(), EngineConfig::default());
    let mut asking = spec(1, &prompt(1, 9), 3);
    asking.sampling.logprobs = Some(4);
    drive.start(asking);
    drive.start(spec(2, &prompt(1, 9), 3));
    drive.run();
    for event in drive.reports().flat_map(|report| &report.tokens) {
        match &event.logprobs {
            Some(logprobs) => {
                assert_eq!((event.key.0, logprobs.top.len()), (1, 4));
                assert_eq!(logprobs.top[0], (event.token, logprobs.sampled));
                assert!(logprobs.top.is_sorted_by(|a, b| a.1 > b.1));
            }
            None => assert_eq!(event.key.0, 2),
        }
    }
}

#[test]
fn a_step_takes_the_sum_of_its_parts() {
    // The mock's sleep is what makes this clock go.
    let now = Arc::new(Mutex::new(Duration::ZERO));
    let (sleeper, clock) = (Arc::clone(&now), Arc::clone(&now));
    let latency = Latency {
        step_micros: 1000,
        prefill_token_micros: 10,
        decode_micros: 100,
    };
    let config = MockConfig {
        latency,
        ..MockConfig::default()
    };
    let backend = MockBackend::new(config, Arc::new(move |span| *sleeper.lock().unwrap() += span)).unwrap();
    let clock = Arc::new(move || *clock.lock().unwrap());
    let mut engine = Engine::with_clock(Box::new(backend), EngineConfig::default(), clock);
    for key in [1, 2] {
        let mut spec = spec(key, &prompt(1, 9), 2);
        spec.blocks = vec![u32::try_from(key).unwrap()];
        engine.apply(Command::Start(spec));
    }
    let mut micros = Vec::new();
    while let Some(EngineEvent::Step(report)) = engine.step() {
        micros.push(report.micros);
    }
    assert_eq!(micros, [1180, 1200], "two prompts of 9, then two decodes");
}

#[test]
fn who_may_exchange_blocks() {
    let hash = |config: MockConfig| MockBackend::new(config, no_sleep()).unwrap().spec().layout_hash;
    let base = MockConfig::default();
    let more_blocks = PoolShape {
        blocks: 9,
        ..base.shape
    };
    let smaller_blocks = PoolShape {
        block_tokens: 8,
        ..base.shape
    };
    assert_eq!(
        hash(base.clone()),
        hash(MockConfig {
            shape: more_blocks,
            ..base.clone()
        })
    );
    assert_ne!(
        hash(base.clone()),
        hash(MockConfig {
            shape: smaller_blocks,
            ..base.clone()
        })
    );
    assert_ne!(hash(base.clone()), hash(MockConfig { salt: 1, ..base }));
}

#[test]
fn a_pattern_needs_eight_bytes() {
    let shape = PoolShape {
        head_dim: 1,
        ..MockConfig::default().shape
    };
    assert!(
        MockBackend::new(
            MockConfig {
                shape,
                ..MockConfig::default()
            },
            no_sleep()
        )
        .is_err()
    );
}
