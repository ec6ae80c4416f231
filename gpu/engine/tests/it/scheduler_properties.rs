//! What holds for every order of commands: each sequence's tokens are computed once, in order, in its own blocks, whatever else is in
//! the batch; no step is too large; none starves.

use engine::{EngineConfig, FinishReason, Goal, SequenceKey, StepPlan, Token};
use proptest::prelude::*;

use crate::world::{END, World, next_token, spec};

#[derive(Clone, Debug)]
enum Op {
    Add {
        prompt: usize,
        max_new: u32,
        priority: u8,
        first: bool,
        ignore_eos: bool,
        blocks_for: usize,
        /// Tokens that it may sample at first.
        may: u32,
    },
    /// Lets one sample so many more than it has.
    Allow(usize, u32),
    Stop(usize),
    Give(usize, u32),
    Step,
}

fn may() -> impl Strategy<Value = u32> {
    prop_oneof![Just(u32::MAX), 0..5_u32]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (1..40_usize, 1..30_u32, 0..3_u8, any::<bool>(), any::<bool>(), 0..50_usize, may()).prop_map(
            |(prompt, max_new, priority, first, ignore_eos, blocks_for, may)| Op::Add {
                prompt, max_new, priority, first, ignore_eos, blocks_for, may,
            }
        ),
        2 => (0..64_usize, 0..4_u32).prop_map(|(which, more)| Op::Allow(which, more)),
        1 => (0..64_usize).prop_map(Op::Stop),
        3 => (0..64_usize, 1..4_u32).prop_map(|(which, most)| Op::Give(which, most)),
        6 => Just(Op::Step),
    ]
}

fn config() -> impl Strategy<Value = EngineConfig> {
    (1..40_u32, 1..20_u32, 1..8_u32, 1..12_u32).prop_map(
        |(step_tokens, chunk_tokens, max_sequences, grow_ahead_tokens)| EngineConfig {
            step_tokens,
            chunk_tokens,
            max_sequences,
            grow_ahead_tokens,
            command_queue: 1,
        },
    )
}

/// No step is larger than its limits allow, and no sequence is in it twice.
fn check_limits(plan: &StepPlan, config: &EngineConfig, decoding: u32) {
    let prefill = (config.step_tokens / 4).max(1);
    assert!(
        plan.tokens() <= config.step_tokens.max(decoding + prefill)
            || plan.tokens() as usize == plan.parts().len(),
        "{plan:?} of {config:?}"
    );
    assert!(
        plan.parts()
            .iter()
            .all(|part| (1..=config.chunk_tokens).contains(&part.tokens)),
        "{plan:?}"
    );
    let mut keys: Vec<_> = plan.parts().iter().map(|part| part.key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), plan.parts().len(), "{plan:?}");
}

/// Keys of the sequences that have one token to compute, a place for it, and leave for the next.
fn ready_to_decode(world: &World) -> Vec<SequenceKey> {
    let ready = world.lives.iter().filter(|(_, life)| {
        !life.left
            && !life.stopped
            && life.computed + 1 == life.tokens.len()
            && life.tokens.len() < life.until as usize
            && life.computed < life.blocks * crate::world::BLOCK_TOKENS
    });
    ready.map(|(&key, _)| key).collect()
}

fn step(world: &mut World) {
    let ready = ready_to_decode(world);
    let config = world.config;
    let Some((plan, _)) = world.step() else {
        assert!(ready.is_empty(), "{ready:?} could have run");
        return;
    };
    check_limits(&plan, &config, u32::try_from(ready.len()).unwrap());
    for key in ready {
        let part = plan.parts().iter().find(|part| part.key == key);
        assert_eq!(
            part.map(|part| part.tokens),
            Some(1),
            "{key:?} decodes in every step: {plan:?}"
        );
    }
}

/// What the sequence would have given alone.
fn alone(prompt: &[Token], max_new: u32, ignore_eos: bool) -> Vec<Token> {
    let mut tokens = prompt.to_vec();
    for _ in 0..max_new {
        tokens.push(next_token(&tokens));
        if !ignore_eos && tokens.last() == Some(&END) {
            break;
        }
    }
    tokens
}

fn key_of(which: usize, world: &World) -> Option<SequenceKey> {
    let count = world.lives.len();
    (count > 0).then(|| *world.lives.keys().nth(which % count).unwrap())
}

fn run(config: EngineConfig, ops: &[Op]) {
    let mut world = World::new(config);
    let mut expected = Vec::new();
    for (index, op) in ops.iter().enumerate() {
        match *op {
            Op::Add {
                prompt,
                max_new,
                priority,
                first,
                ignore_eos,
                blocks_for,
                may,
            } => {
                if world.scheduler.sequences() >= config.max_sequences as usize {
                    continue;
                }
                let mut new = spec(index as u64, prompt, max_new);
                new.priority = priority;
                new.ignore_eos = ignore_eos;
                new.until = may.saturating_add(u32::try_from(prompt).unwrap());
                new.goal = if first { Goal::FirstToken } else { Goal::Answer };
                let max_new = if first { 1 } else { max_new };
                expected.push((new.key, alone(&new.tokens, max_new, ignore_eos)));
                world.add(new, blocks_for);
            }
            Op::Allow(which, more) => {
                if let Some(key) = key_of(which, &world) {
                    let has = u32::try_from(world.lives[&key].tokens.len()).unwrap();
                    world.allow(key, has + more);
                }
            }
            Op::Stop(which) => {
                if let Some(key) = key_of(which, &world) {
                    world.stop(key);
                }
            }
            Op::Give(which, most) => {
                if let Some(key) = key_of(which, &world) {
                    world.give(key, most);
                }
            }
            Op::Step => step(&mut world),
        }
    }
    world.drain();
    assert_eq!(world.scheduler.sequences(), 0);
    for (key, tokens) in expected {
        let life = &world.lives[&key];
        if life.stopped {
            assert!(
                tokens.starts_with(&life.tokens),
                "{key:?}: {life:?}, alone {tokens:?}"
            );
        } else {
            assert_eq!(life.tokens, tokens, "{key:?}");
            assert_eq!(
                life.computed + 1,
                life.tokens.len(),
                "all but the last token are computed"
            );
            let stopped_itself = life.last_finish == Some(FinishReason::Stop);
            assert!(!stopped_itself || tokens.last() == Some(&END));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn every_order_of_commands(config in config(), ops in prop::collection::vec(op(), 1..120)) {
        run(config, &ops);
    }
}
