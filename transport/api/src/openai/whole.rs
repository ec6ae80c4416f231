//! An answer in one piece.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};

use super::answer::Answer;
use super::error::ApiError;
use super::feed::{Feed, Step};
use super::shape::Shape;
use crate::submit::{FinishReason, TokenLogprob, TopLogprob};

#[derive(Default)]
struct Collected {
    text: String,
    logprobs: Vec<TokenLogprob>,
    finish: Option<FinishReason>,
}

/// Waits for the end of every continuation; the first failure is the answer. Holds at most `most_bytes`.
pub(crate) async fn collect<S: Shape>(
    mut feed: Feed,
    answer: Answer<S>,
    first: Option<Step>,
    most_bytes: usize,
) -> Result<Response, ApiError> {
    let mut bytes: usize = (0..answer.len()).map(|index| answer.echo(index).len()).sum();
    if bytes > most_bytes {
        feed.end();
        return Err(too_large(most_bytes));
    }
    let mut all: Vec<Collected> = (0..answer.len())
        .map(|index| Collected {
            text: answer.echo(index).to_owned(),
            ..Collected::default()
        })
        .collect();
    let mut next = first;
    loop {
        match next {
            Some(Step::Text {
                index,
                text,
                logprobs,
            }) => {
                bytes += text.len() + logprobs.iter().map(footprint).sum::<usize>();
                if bytes > most_bytes {
                    feed.end();
                    return Err(too_large(most_bytes));
                }
                if let Some(one) = all.get_mut(index as usize) {
                    one.text.push_str(&text);
                    one.logprobs.extend(logprobs);
                }
            }
            Some(Step::Done { index, finish }) => {
                if let Some(one) = all.get_mut(index as usize) {
                    one.finish = Some(finish);
                }
            }
            Some(Step::Failed(failure)) => return Err(failure.into()),
            Some(Step::End) => break,
            None => {}
        }
        next = feed.next(None).await;
    }
    let choices: Vec<S::Choice> = (0u32..)
        .zip(all)
        .map(|(index, one)| choice::<S>(index, one))
        .collect();
    let mut response = answer.whole_json(&choices, feed.usage()).into_response();
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

fn choice<S: Shape>(index: u32, one: Collected) -> S::Choice {
    let logprobs = Some(one.logprobs.as_slice()).filter(|list| !list.is_empty());
    // Every continuation has ended by now, and its reason is known.
    S::whole(
        index,
        one.text,
        logprobs,
        one.finish.unwrap_or(FinishReason::Length),
    )
}

/// What a token takes up in memory: far more than its text, where its alternatives were asked for.
fn footprint(token: &TokenLogprob) -> usize {
    let top = |top: &TopLogprob| size_of_val(top) + top.token.len() + top.bytes.len();
    size_of_val(token) + token.token.len() + token.bytes.len() + token.top.iter().map(top).sum::<usize>()
}

fn too_large(most_bytes: usize) -> ApiError {
    let message = format!(
        "the answer is larger than the {most_bytes} bytes that are held for one: use `stream: true`, or ask for fewer tokens, \
         choices or log probabilities"
    );
    ApiError {
        code: Some("answer_too_large"),
        ..ApiError::invalid("stream", message)
    }
}
