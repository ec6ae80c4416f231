//! Prompts at the edge of the model's context, on one worker and handed over from one to another.

use engine::{EngineConfig, EngineEvent, FinishReason, Goal, Refusal, SequenceKey, Token, TokenEvent};
use mock::MockConfig;

use crate::drive::{Drive, prompt, spec};
use crate::handover::copy_blocks;

/// Of the model, in tokens. No multiple of the block size.
const CONTEXT: usize = 70;

fn drive() -> Drive {
    let mock = MockConfig {
        context_tokens: u32::try_from(CONTEXT).unwrap(),
        ..MockConfig::default()
    };
    let config = EngineConfig {
        chunk_tokens: 32,
        ..EngineConfig::default()
    };
    Drive::new(mock, config)
}

fn tokens(drive: &Drive) -> Vec<TokenEvent> {
    let tokens = drive.reports().flat_map(|report| &report.tokens);
    tokens.cloned().collect()
}

/// What a client sees of tokens.
fn seen(tokens: &[TokenEvent]) -> Vec<(Token, u32, Option<FinishReason>)> {
    let tokens = tokens.iter();
    tokens
        .map(|event| (event.token, event.position, event.finish))
        .collect()
}

/// How many tokens an answer to a prompt of this length has, when it may have any number.
#[track_caller]
fn check_answer(prompt_tokens: usize, expected: usize) {
    let mut drive = drive();
    drive.start(spec(1, &prompt(1, prompt_tokens), u32::MAX));
    drive.run();
    let tokens = tokens(&drive);
    assert_eq!(tokens.len(), expected, "a prompt of {prompt_tokens}");
    let last = tokens.last().unwrap();
    assert_eq!((last.finish, last.left), (Some(FinishReason::Length), true));
    assert_eq!(
        last.position as usize,
        CONTEXT - 1,
        "the context is full, and not exceeded"
    );
    // The last token's KV is never computed, so no block is taken for it.
    assert_eq!(drive.blocks[&SequenceKey(1)].len(), (CONTEXT - 1).div_ceil(16));
    assert_eq!(drive.canary.found(), 0);
}

#[test]
fn an_answer_fills_what_the_prompt_leaves() {
    check_answer(CONTEXT - 3, 3);
    check_answer(CONTEXT - 2, 2);
    check_answer(CONTEXT - 1, 1);
}

#[test]
fn a_prompt_that_leaves_no_room_is_refused_and_takes_nothing() {
    for (tokens, goal) in [
        (CONTEXT, Goal::Answer),
        (CONTEXT, Goal::FirstToken),
        (CONTEXT + 1, Goal::Answer),
    ] {
        let mut drive = drive();
        let mut long = spec(1, &prompt(1, tokens), 5);
        long.goal = goal;
        drive.start(long);
        let context = u32::try_from(CONTEXT).unwrap();
        let why = Refusal::TooLong { tokens, context };
        let key = SequenceKey(1);
        assert_eq!(drive.events, [EngineEvent::Refused { key, why }]);
        assert_eq!(drive.engine.step(), None);
    }
}

/// A prompt of this length, prefilled on one worker: whether its first token is its last, and the whole answer.
#[track_caller]
fn check_handed_over(prompt_tokens: usize, whole: bool) {
    let mut alone = drive();
    alone.start(spec(1, &prompt(1, prompt_tokens), 9));
    alone.run();

    let mut prefill = drive();
    let mut first = spec(1, &prompt(1, prompt_tokens), 9);
    first.goal = Goal::FirstToken;
    prefill.start(first.clone());
    prefill.run();
    let mut answer = tokens(&prefill);
    assert_eq!(answer.len(), 1);
    assert_eq!(
        (answer[0].finish, answer[0].left),
        (whole.then_some(FinishReason::Length), true)
    );
    if !whole {
        let mut decode = drive();
        first.goal = Goal::Answer;
        first.computed = u32::try_from(prompt_tokens).unwrap();
        first.tokens.push(answer[0].token);
        first.max_new -= 1;
        let source = &prefill.blocks[&SequenceKey(1)];
        first.blocks = decode.fresh(source.len());
        copy_blocks(&prefill.pool, source, &decode.pool, &first.blocks);
        decode.start(first);
        decode.run();
        answer.extend(tokens(&decode));
    }
    assert_eq!(
        seen(&answer),
        seen(&tokens(&alone)),
        "a prompt of {prompt_tokens}"
    );
}

#[test]
fn a_hand_over_at_the_edge_gives_the_same_answer() {
    check_handed_over(CONTEXT - 1, true);
    check_handed_over(CONTEXT - 2, false);
    check_handed_over(CONTEXT - 3, false);
}
