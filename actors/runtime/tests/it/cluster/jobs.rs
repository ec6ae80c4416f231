//! Jobs, and reading their answers.

use engine::Token;
use room::{AbortBy, Finish, Outcome};
use runtime::{Answer, AnswerEvent, Job};
use tokio::time::timeout;

use super::PATIENCE;

/// A job with a prompt of so many tokens, made from `seed`, that asks for so many.
pub(crate) fn job(seed: u32, prompt: u32, max_new: u32) -> Job {
    Job {
        request_id: format!("job-{seed}"),
        prompt: (0..prompt).map(|i| 1 + (seed * 31 + i * 7) % 900).collect(),
        n: 1,
        max_new,
        sampling: engine::Sampling::default(),
        ignore_eos: false,
        priority: 0,
        share: room::Share::default(),
        salt: 0,
        timeout: PATIENCE * 2,
        trace: None,
        prepared: runtime::Preparation::default(),
    }
}

/// One answer, read to its end.
#[derive(Clone, Eq, PartialEq, Debug, Default)]
pub(crate) struct Got {
    pub(crate) tokens: Vec<Token>,
    pub(crate) outcome: Option<Outcome>,
}

/// An answer that is whole because it has all the tokens it may have.
pub(crate) fn completed(tokens: Vec<Token>) -> Got {
    Got {
        tokens,
        outcome: Some(Outcome::Completed(Finish::Length)),
    }
}

pub(crate) fn aborted(by: AbortBy) -> Outcome {
    Outcome::Aborted(by)
}

async fn next(answer: &mut Answer) -> Option<AnswerEvent> {
    timeout(PATIENCE, answer.next()).await.expect("no event in time")
}

/// The next tokens of a job with one answer.
pub(crate) async fn next_tokens(answer: &mut Answer) -> Vec<Token> {
    match next(answer).await {
        Some(AnswerEvent::Tokens { tokens, .. }) => tokens.into_iter().map(|out| out.token).collect(),
        other => panic!("tokens were expected, not {other:?}"),
    }
}

/// Reads all answers to their ends. Finds that nothing follows an outcome (INV-05) and that each has exactly one (INV-03).
pub(crate) async fn finish(answer: &mut Answer) -> Vec<Got> {
    let mut got = vec![Got::default(); answer.rooms().len()];
    while let Some(event) = next(answer).await {
        let (AnswerEvent::Tokens { index, .. } | AnswerEvent::Ended { index, .. }) = event;
        let got = &mut got[index];
        assert_eq!(
            got.outcome, None,
            "INV-05: something follows the end of {index}: {event:?}"
        );
        match event {
            AnswerEvent::Tokens { tokens, .. } => got.tokens.extend(tokens.iter().map(|out| out.token)),
            AnswerEvent::Ended { outcome, .. } => got.outcome = Some(outcome),
        }
    }
    assert!(got.iter().all(|got| got.outcome.is_some()), "INV-03: {got:?}");
    got
}
