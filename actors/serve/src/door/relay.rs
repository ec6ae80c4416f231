//! The task that turns a gateway's answer into what the door sends: ends with the answer, with the client, or at the deadline.

use std::sync::Arc;
use std::time::Duration;

use api::{Event, FinishReason, GenerateRequest};
use model::Tokenizer;
use room::{Finish, Outcome};
use runtime::{Answer, AnswerEvent};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::outcome;
use crate::text::TextStream;

/// After a request's deadline: for the outcome that says so.
const OUTCOME_GRACE: Duration = Duration::from_secs(1);

/// Relays until every answer has ended. Returning drops the answer, which aborts what has not ended.
pub(super) async fn run(
    mut answer: Answer,
    tokenizer: Arc<Tokenizer>,
    request: GenerateRequest,
    events: mpsc::Sender<Event>,
) {
    let began = Instant::now();
    // A client that reads slowly pauses its own answer: nothing is asked for here before the last event was taken, and so counts as
    // unread. It may do so until the request's deadline, unless the door finds that it takes nothing at all.
    let patience = began + request.timeout + OUTCOME_GRACE;
    let mut texts: Vec<TextStream> = (0..request.n)
        .map(|_| TextStream::new(&tokenizer, &request.stop))
        .collect();
    loop {
        let event = tokio::select! {
            biased;
            () = events.closed() => return,
            // Bounded by the request's deadline: see `Answer::next`.
            event = answer.next() => event,
        };
        let Some(event) = event else { return };
        let relayed = match event {
            AnswerEvent::Tokens { index, tokens } => {
                let Some(text) = texts.get_mut(index).filter(|text| !text.stopped()) else {
                    continue;
                };
                let piece = text.push(&tokens);
                let mut relayed = vec![Event::Text {
                    index: number(index),
                    text: piece.text,
                    logprobs: piece.logprobs,
                }];
                if piece.stopped {
                    answer.stop_string_found(index);
                    relayed.push(done(
                        index,
                        FinishReason::Stop,
                        text,
                        cached_tokens(&answer, index),
                    ));
                }
                relayed
            }
            AnswerEvent::Ended { index, outcome } => {
                let Some(text) = texts.get_mut(index).filter(|text| !text.stopped()) else {
                    continue;
                };
                ended(&answer, index, outcome, text, &request)
            }
        };
        for event in relayed {
            match timeout_at(patience, events.send(event)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }
}

/// Tokens of the prompt that were in a cache before this request came. What its later rooms find there may be its first one's own work.
fn cached_tokens(answer: &Answer, index: usize) -> u32 {
    if index == 0 {
        answer.cached_tokens(index)
    } else {
        0
    }
}

fn ended(
    answer: &Answer,
    index: usize,
    outcome: Outcome,
    text: &mut TextStream,
    request: &GenerateRequest,
) -> Vec<Event> {
    if let Some(failure) = outcome::failure(outcome, answer.ended_in(index), request.timeout) {
        return vec![Event::Failed {
            index: number(index),
            failure,
        }];
    }
    let finish = match outcome {
        Outcome::Completed(Finish::Length) => FinishReason::Length,
        _ => FinishReason::Stop,
    };
    let rest = text.finish();
    let mut relayed = Vec::new();
    if !rest.is_empty() {
        relayed.push(Event::Text {
            index: number(index),
            text: rest,
            logprobs: Vec::new(),
        });
    }
    relayed.push(done(index, finish, text, cached_tokens(answer, index)));
    relayed
}

fn done(index: usize, finish: FinishReason, text: &TextStream, cached_tokens: u32) -> Event {
    Event::Done {
        index: number(index),
        finish,
        completion_tokens: text.tokens(),
        cached_tokens,
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
