//! What a step is made of.

use engine::{EngineConfig, FinishReason, Goal, SequenceKey};

use crate::world::{BLOCK_TOKENS, World, next_token, spec};

const CONFIG: EngineConfig = EngineConfig {
    step_tokens: 10,
    chunk_tokens: 6,
    max_sequences: 8,
    grow_ahead_tokens: 2,
    command_queue: 8,
};

/// The (key, tokens) of the next step.
#[track_caller]
fn check_step(world: &mut World, expected: &[(u64, u32)]) {
    let step = world.step();
    let parts: Vec<(u64, u32)> = step
        .iter()
        .flat_map(|(plan, _)| plan.parts())
        .map(|part| (part.key.0, part.tokens))
        .collect();
    assert_eq!(parts, expected);
}

#[test]
fn prefill_is_cut_into_chunks_and_the_budget_goes_to_the_oldest_first() {
    let mut world = World::new(CONFIG);
    for key in 1..=3 {
        world.add(spec(key, 9, 50), 40);
    }
    check_step(&mut world, &[(1, 6), (2, 3), (3, 1)]);
    check_step(&mut world, &[(1, 3), (2, 6), (3, 1)]);
    // The first two decode now and are never left out; what remains is shared as before.
    check_step(&mut world, &[(1, 1), (2, 1), (3, 6)]);
}

#[test]
fn a_lower_priority_number_goes_first_but_never_before_decoding_sequences() {
    let mut world = World::new(CONFIG);
    world.add(spec(1, 3, 50), 40);
    check_step(&mut world, &[(1, 3)]);
    let mut late = spec(2, 20, 5);
    late.priority = 9;
    world.add(late, 40);
    let mut urgent = spec(3, 20, 5);
    urgent.priority = 1;
    world.add(urgent, 40);
    check_step(&mut world, &[(1, 1), (3, 6), (2, 3)]);
}

#[test]
fn prefill_goes_on_when_decoding_takes_the_whole_budget() {
    let mut world = World::new(EngineConfig {
        step_tokens: 2,
        ..CONFIG
    });
    for key in 1..=3 {
        world.add(spec(key, 1, 50), 40);
    }
    world.add(spec(4, 3, 50), 40);
    check_step(&mut world, &[(1, 1), (2, 1), (3, 1), (4, 1)]);
    check_step(&mut world, &[(1, 1), (2, 1), (3, 1), (4, 1)]);
}

#[test]
fn a_quarter_of_a_step_is_for_prefill_however_many_decode() {
    let mut world = World::new(EngineConfig {
        max_sequences: 40,
        ..CONFIG
    });
    for key in 1..=30 {
        world.add(spec(key, 1, 50), 60);
    }
    world.step();
    world.add(spec(31, 20, 50), 80);
    let (plan, _) = world.step().unwrap();
    let prefill = plan.parts().last().unwrap();
    assert_eq!((plan.parts().len(), prefill.key.0, prefill.tokens), (31, 31, 2));
}

/// Long prompts ahead of it are no reason to take it for stuck.
#[test]
fn a_prompt_that_waits_for_its_turn_advances_in_every_step() {
    let mut world = World::new(CONFIG);
    for key in 1..=4 {
        world.add(spec(key, 60, 5), 80);
    }
    for _ in 0..5 {
        check_step(&mut world, &[(1, 6), (2, 2), (3, 1), (4, 1)]);
    }
}

#[test]
fn whoever_lost_a_step_is_owed_the_next_one() {
    let mut world = World::new(CONFIG);
    world.add(spec(1, 3, 50), 40);
    world.add(spec(2, 20, 50), 40);
    let owed = |world: &World| -> Vec<(u64, bool)> {
        let plan = world.scheduler.next_step().unwrap();
        plan.parts().iter().map(|part| (part.key.0, part.owed)).collect()
    };
    assert_eq!(owed(&world), [(1, false), (2, false)]);
    let plan = world.scheduler.next_step().unwrap();
    world.scheduler.abandon(&plan);
    world.stop(SequenceKey(2));
    world.add(spec(3, 20, 50), 40);
    assert_eq!(owed(&world), [(1, true), (3, false)]);
    check_step(&mut world, &[(1, 3), (3, 6)]);
    assert_eq!(owed(&world), [(1, false), (3, false)]);
}

#[test]
fn a_sequence_without_blocks_waits_and_says_so_once() {
    let mut world = World::new(CONFIG);
    world.add(spec(1, 6, 50), BLOCK_TOKENS);
    world.add(spec(2, 3, 50), 40);
    check_step(&mut world, &[(1, 4), (2, 3)]);
    assert_eq!(
        world.lives[&SequenceKey(1)].owed,
        1,
        "six tokens and two ahead are two blocks"
    );
    check_step(&mut world, &[(2, 1)]);
    assert_eq!(world.lives[&SequenceKey(1)].owed, 1, "asked again");
    world.give_all();
    check_step(&mut world, &[(2, 1), (1, 2)]);
}

#[test]
fn a_decoding_sequence_asks_before_it_must_wait() {
    let mut world = World::new(CONFIG);
    world.add(spec(1, 3, 60), 3);
    // What it asks for in one step comes after the next.
    let mut asked = 0;
    while !world.lives[&SequenceKey(1)].left {
        assert!(world.step().is_some(), "it had to wait: {:?}", world.lives);
        world.give(SequenceKey(1), asked);
        asked = world.lives[&SequenceKey(1)].owed;
    }
    let life = &world.lives[&SequenceKey(1)];
    assert!(life.tokens.len() <= 63);
    // No more than the blocks it needed, the last token's position not being one.
    assert!(
        life.blocks <= (life.tokens.len() + 1).div_ceil(BLOCK_TOKENS),
        "{life:?}"
    );
}

#[test]
fn a_stop_takes_effect_at_the_next_step() {
    let mut world = World::new(CONFIG);
    world.add(spec(1, 300, 5), 310);
    world.add(spec(2, 2, 5), 10);
    check_step(&mut world, &[(1, 6), (2, 2)]);
    world.stop(SequenceKey(1));
    check_step(&mut world, &[(2, 1)]);
    world.stop(SequenceKey(1));
    assert_eq!(world.scheduler.sequences(), 1);
}

/// It is in no step, keeps what it has, and the others' steps are what they would be without it.
#[test]
fn whoever_may_not_sample_waits_and_costs_nobody_anything() {
    let mut world = World::new(CONFIG);
    let paused = SequenceKey(1);
    world.add(
        engine::SequenceSpec {
            until: 5,
            ..spec(1, 3, 50)
        },
        40,
    );
    world.add(spec(2, 3, 50), 40);
    check_step(&mut world, &[(1, 3), (2, 3)]);
    check_step(&mut world, &[(1, 1), (2, 1)]);
    assert_eq!(world.lives[&paused].tokens.len(), 5);
    world.add(spec(3, 20, 50), 40);
    check_step(&mut world, &[(2, 1), (3, 6)]);
    // Less than before is no leave, and neither is as much.
    world.allow(paused, 4);
    world.allow(paused, 5);
    check_step(&mut world, &[(2, 1), (3, 6)]);
    world.allow(paused, 7);
    check_step(&mut world, &[(1, 1), (2, 1), (3, 6)]);
    check_step(&mut world, &[(1, 1), (2, 1), (3, 2)]);
    check_step(&mut world, &[(2, 1), (3, 1)]);
    assert_eq!(world.scheduler.sequences(), 3);
    world.scheduler.allow(SequenceKey(9), 9);
}

#[test]
fn a_step_of_nobody_who_may_sample_is_none() {
    let mut world = World::new(CONFIG);
    world.add(
        engine::SequenceSpec {
            until: 8,
            ..spec(1, 8, 50)
        },
        40,
    );
    // All but the token whose logits would give the next one.
    check_step(&mut world, &[(1, 6)]);
    check_step(&mut world, &[(1, 1)]);
    check_step(&mut world, &[]);
    world.allow(SequenceKey(1), 9);
    check_step(&mut world, &[(1, 1)]);
    check_step(&mut world, &[]);
}

/// In its prompt or later: it leaves, its step is not booked for it, and the others go on as they would.
#[test]
fn a_sequence_without_a_next_token_fails_alone() {
    for fails_at in [9, 12] {
        let mut world = World::new(CONFIG);
        world.add(spec(1, 9, 8), 40);
        world.add(spec(2, 9, 8), 40);
        let bad = SequenceKey(1);
        world.lives.get_mut(&bad).unwrap().fails_at = Some(fails_at);
        world.drain();
        let life = &world.lives[&bad];
        assert!(life.failed && life.left, "{life:?}");
        assert_eq!((life.tokens.len(), life.last_finish), (fails_at, None));
        let other = &world.lives[&SequenceKey(2)];
        assert_eq!(
            (other.tokens.len(), other.last_finish),
            (17, Some(FinishReason::Length))
        );
        assert_eq!(world.scheduler.sequences(), 0);
    }
}

#[test]
fn the_goal_of_one_token_ends_with_it() {
    let mut world = World::new(CONFIG);
    let mut prefill = spec(1, 8, 50);
    prefill.goal = Goal::FirstToken;
    let expected = next_token(&prefill.tokens);
    world.add(prefill, 8);
    world.drain();
    let life = &world.lives[&SequenceKey(1)];
    assert_eq!(
        (life.tokens.last().copied(), life.last_finish, life.left),
        (Some(expected), None, true)
    );
    assert_eq!(life.blocks, 2, "it needs no block beyond its prompt");
    assert_eq!(world.scheduler.sequences(), 0);
}

#[test]
fn an_answer_ends_by_length_or_by_the_end_token() {
    let mut ends = [0, 0];
    for key in 1..40 {
        let mut world = World::new(CONFIG);
        let mut spec = spec(key, usize::try_from(key).unwrap(), 20);
        spec.ignore_eos = false;
        world.add(spec, 60);
        world.drain();
        let life = &world.lives[&SequenceKey(key)];
        let generated = life.tokens.len() - usize::try_from(key).unwrap();
        match life.last_finish {
            Some(FinishReason::Length) => assert_eq!(generated, 20),
            Some(FinishReason::Stop) => assert_eq!(life.tokens.last(), Some(&crate::world::END)),
            None => panic!("{life:?}"),
        }
        ends[usize::from(life.last_finish == Some(FinishReason::Stop))] += 1;
    }
    assert!(
        ends.iter().all(|&count| count > 0),
        "both ends must have been seen: {ends:?}"
    );
}

#[test]
fn a_handed_over_sequence_computes_only_its_last_token() {
    for computed in [8, 9] {
        let mut world = World::new(CONFIG);
        let mut decode = spec(1, 9, 5);
        decode.prompt_tokens = 8;
        decode.computed = computed;
        world.add(decode, 12);
        check_step(&mut world, &[(1, 1)]);
    }
}

#[test]
fn an_answer_is_cut_at_the_context() {
    let mut world = World::new(CONFIG);
    let long = spec(1, 390, 1000);
    world.add(long, 400);
    world.drain();
    let life = &world.lives[&SequenceKey(1)];
    assert_eq!(
        (life.tokens.len(), life.last_finish),
        (400, Some(FinishReason::Length))
    );
}
