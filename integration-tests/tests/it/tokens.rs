//! The right tokens: the real model through engine, model and CPU device, against an independent implementation, and against itself.
//!
//! The reference files lie with the model crate; how they were made is written in `make.py` beside them. "The same" means bit for bit,
//! and is asked of the logits, not just of the tokens that won.

mod gemma3;
mod reference;
mod rig;
mod tap;

use cpu::{Activations, Level};
use engine::{Goal, SequenceKey};
use reference::{Case, cases};
use rig::{Answer, Rig, Start, copy_blocks};

/// Generated tokens of the runs that are compared bit for bit.
const NEW_TOKENS: u32 = 8;
/// Prompts of these runs: 89, 22 and 44 tokens.
const PROMPTS: [usize; 3] = [3, 4, 11];
/// Largest difference of a logit from the reference's, relative to the largest logit.
const LOGIT_TOLERANCE: f32 = 1e-2;
/// The same where activations are rounded to eight bits.
const ROUNDED_TOLERANCE: f32 = 6e-2;
/// What is asked of the device against itself, it must give both ways.
const BOTH: [Activations; 2] = [Activations::F32, Activations::Int8];

/// The answers to [`PROMPTS`], one after the other, prefilled in chunks of so many tokens.
fn one_by_one(cases: &[Case], activations: Activations, chunk_tokens: u32) -> Vec<Answer> {
    let mut rig = Rig::new(activations, chunk_tokens, None);
    let start = |(key, &prompt): (u64, &usize)| Start::new(key, &cases[prompt].ids, NEW_TOKENS);
    (0..)
        .zip(&PROMPTS)
        .map(start)
        .map(|start| rig.one(start))
        .collect()
}

#[test]
fn greedy_answers_are_those_of_the_reference() {
    let cases = cases();
    let mut rig = Rig::new(Activations::F32, 64, None);
    let starts = (0..)
        .zip(&cases)
        .map(|(key, case)| Start::new(key, &case.ids, 64));
    let answers = rig.run(starts.collect());
    let wrong: Vec<&str> = cases
        .iter()
        .zip(answers.values())
        .filter(|(case, answer)| case.generated != answer.tokens)
        .map(|(case, _)| case.text.as_str())
        .collect();
    assert_eq!((cases.len(), answers.len()), (20, 20));
    assert!(
        wrong.len() <= 1,
        "{} of 20 answers differ: {wrong:#?}",
        wrong.len()
    );
}

#[test]
fn logits_of_the_first_position_are_those_of_the_reference() {
    first_logits_are_near(Activations::F32, LOGIT_TOLERANCE);
}

#[test]
fn rounded_activations_move_the_logits_of_the_first_position_a_little() {
    first_logits_are_near(Activations::Int8, ROUNDED_TOLERANCE);
}

#[track_caller]
fn first_logits_are_near(activations: Activations, tolerance: f32) {
    let mut rig = Rig::new(activations, 512, None);
    near_in(&mut rig, &cases(), tolerance);
}

/// The logits behind every prompt are the reference's, or near them.
#[track_caller]
fn near_in(rig: &mut Rig, cases: &[Case], tolerance: f32) {
    for (key, case) in (0..).zip(cases) {
        let answer = rig.one(Start::new(key, &case.ids, 1));
        let logits = &answer.logits[0];
        for (token, expected) in case.first_logits() {
            let error = (logits[token] - expected).abs() / case.first.max_abs;
            assert!(
                error <= tolerance,
                "{:?}: token {token} has {}, not {expected}",
                case.text,
                logits[token]
            );
        }
    }
}

#[test]
fn the_size_of_chunks_changes_nothing() {
    let cases = cases();
    for activations in BOTH {
        let whole = one_by_one(&cases, activations, 512);
        for chunk_tokens in [1, 7, 16, 64] {
            for (whole, chunked) in whole.iter().zip(one_by_one(&cases, activations, chunk_tokens)) {
                whole.check_same(&chunked, &format!("{activations:?}, chunks of {chunk_tokens}"));
            }
        }
    }
}

#[test]
fn company_changes_nothing() {
    BOTH.into_iter().for_each(company);
}

fn company(activations: Activations) {
    let cases = cases();
    let mut rig = Rig::new(activations, 16, None);
    for (prompt, alone) in PROMPTS.into_iter().zip(one_by_one(&cases, activations, 512)) {
        // Sixteen others, before and behind it, that come to their ends at different times.
        let others = (1..).zip(cases.iter().filter(|c| c.ids.len() < 80)).take(16);
        let mut starts: Vec<Start> = others
            .map(|(key, case)| Start::new(key, &case.ids, 1 + u32::try_from(key).unwrap() % 12))
            .collect();
        assert_eq!(starts.len(), 16);
        starts.insert(prompt, Start::new(0, &cases[prompt].ids, NEW_TOKENS));
        let answers = rig.run(starts);
        alone.check_same(&answers[&SequenceKey(0)], "among sixteen others");
    }
}

#[test]
fn instructions_change_nothing() {
    let case = &cases()[0];
    for activations in BOTH {
        let expected = Rig::new(activations, 64, None).one(Start::new(0, &case.ids, 3));
        for level in Level::available() {
            // The plain level may be slow: a few tokens are enough, since every operation takes part in each.
            let answer = Rig::new(activations, 64, Some(level)).one(Start::new(0, &case.ids, 3));
            expected.check_same(&answer, &format!("{activations:?}, {level:?}"));
        }
    }
}

#[test]
fn prefill_and_decode_on_two_workers_change_nothing() {
    BOTH.into_iter().for_each(prefill_and_decode);
}

fn prefill_and_decode(activations: Activations) {
    let cases = cases();
    let rig = || Rig::new(activations, 64, None);
    let (mut prefill, mut decode) = (rig(), rig());
    // So that the blocks have other numbers over there.
    decode.skip_blocks(5);
    for (prompt, alone) in PROMPTS.into_iter().zip(one_by_one(&cases, activations, 512)) {
        let case = &cases[prompt];
        let mut first = Start::new(prompt as u64, &case.ids, NEW_TOKENS);
        first.goal = Goal::FirstToken;
        let source = prefill.blocks_for(case.ids.len());
        first.blocks.clone_from(&source);
        let mut answer = prefill.one(first);
        assert_eq!(answer.tokens.len(), 1, "a prefill worker samples one token");

        let tokens = [&case.ids[..], &answer.tokens].concat();
        let mut rest = Start::new(prompt as u64, &tokens, NEW_TOKENS - 1);
        rest.prompt_tokens = case.ids.len();
        rest.computed = u32::try_from(case.ids.len()).unwrap();
        rest.blocks = decode.blocks_for(case.ids.len());
        assert_ne!(rest.blocks, source);
        copy_blocks(&prefill, &source, &decode, &rest.blocks);
        answer.extend(decode.one(rest));
        alone.check_same(&answer, "prefill and decode apart");
    }
}
