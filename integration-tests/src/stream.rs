//! Streamed completions, read as they come and put together again.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::cluster::MODEL;
use crate::http::{Response, post};

/// A streamed completion on its way.
pub struct Stream {
    response: Response,
    unread: String,
    answer: Answer,
    started: Instant,
    last: Instant,
}

/// A completion as its client saw it.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The text, of choice 0.
    pub text: String,
    /// Each token's text.
    pub tokens: Vec<String>,
    /// Each token's log-probability, as written in the answer: equal text is equal bits.
    pub logprobs: Vec<String>,
    /// Why it ended, if it did in order.
    pub finish: Option<String>,
    /// Whether `[DONE]` came.
    pub done: bool,
    /// The error, in the head or in the stream.
    pub error: Option<Value>,
    /// From the request to the first token.
    pub first: Duration,
    /// The longest time between two tokens.
    pub longest_gap: Duration,
}

/// A request of `max_tokens` tokens exactly, streamed, with log-probabilities.
#[must_use]
pub fn completion(prompt: &str, max_tokens: u32, temperature: f64, seed: u64) -> Value {
    json!({
        "model": MODEL, "prompt": prompt, "max_tokens": max_tokens, "temperature": temperature, "seed": seed,
        "ignore_eos": true, "stream": true, "logprobs": 1,
    })
}

impl Stream {
    /// Sends a request and waits for the head of its answer.
    ///
    /// # Errors
    /// If there is no answer at all.
    pub async fn open(to: SocketAddr, request: &Value) -> Result<Self, String> {
        let started = Instant::now();
        let response = post(to, "/v1/completions", request).await?;
        let answer = Answer {
            status: response.status,
            ..Answer::default()
        };
        Ok(Self {
            response,
            unread: String::new(),
            answer,
            started,
            last: started,
        })
    }

    /// `Retry-After`, if its head has one.
    #[must_use]
    pub fn retry_after(&self) -> Option<String> {
        self.response.retry_after.clone()
    }

    /// Reads on until there are so many tokens, or the answer is over.
    ///
    /// # Errors
    /// If the connection breaks.
    pub async fn read_tokens(&mut self, count: usize) -> Result<&Answer, String> {
        while self.answer.tokens.len() < count && self.read().await? {}
        Ok(&self.answer)
    }

    /// Forgets the gaps so far: from now on they are those of what happens next.
    pub fn mark(&mut self) {
        self.answer.longest_gap = Duration::ZERO;
        self.last = Instant::now();
    }

    /// Reads the rest.
    ///
    /// # Errors
    /// If the connection breaks.
    pub async fn finish(mut self) -> Result<Answer, String> {
        while self.read().await? {}
        if self.answer.status != 200 {
            let body: Value = serde_json::from_str(&self.unread).map_err(|e| e.to_string())?;
            self.answer.error = body.get("error").cloned();
        }
        Ok(self.answer)
    }

    /// Reads one piece; false at the end.
    async fn read(&mut self) -> Result<bool, String> {
        let Some(bytes) = self.response.next().await? else {
            return Ok(false);
        };
        self.unread
            .push_str(std::str::from_utf8(&bytes).map_err(|e| e.to_string())?);
        if self.answer.status == 200 {
            while let Some((event, rest)) = self.unread.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.unread = rest;
                self.event(&event)?;
            }
        }
        Ok(true)
    }

    fn event(&mut self, event: &str) -> Result<(), String> {
        for line in event.lines() {
            let Some(data) = line.strip_prefix("data: ") else {
                continue;
            };
            if data == "[DONE]" {
                self.answer.done = true;
                continue;
            }
            let data: Value = serde_json::from_str(data).map_err(|e| format!("{data}: {e}"))?;
            if let Some(error) = data.get("error") {
                self.answer.error = Some(error.clone());
            }
            self.chunk(&data["choices"][0]);
        }
        Ok(())
    }

    fn chunk(&mut self, choice: &Value) {
        let answer = &mut self.answer;
        answer.text.push_str(choice["text"].as_str().unwrap_or_default());
        if let Some(why) = choice["finish_reason"].as_str() {
            answer.finish = Some(why.to_owned());
        }
        let tokens = choice["logprobs"]["tokens"].as_array();
        let logprobs = choice["logprobs"]["token_logprobs"].as_array();
        let (Some(tokens), Some(logprobs)) = (tokens, logprobs) else {
            return;
        };
        if tokens.is_empty() {
            return;
        }
        let now = Instant::now();
        if answer.tokens.is_empty() {
            answer.first = now - self.started;
        } else {
            answer.longest_gap = answer.longest_gap.max(now - self.last);
        }
        self.last = now;
        let text = |token: &Value| token.as_str().unwrap_or_default().to_owned();
        answer.tokens.extend(tokens.iter().map(text));
        answer.logprobs.extend(logprobs.iter().map(Value::to_string));
    }
}

/// The whole answer to a request.
///
/// # Panics
/// If there is none.
pub async fn answer(to: SocketAddr, request: &Value) -> Answer {
    let stream = Stream::open(to, request).await.expect("an answer");
    stream.finish().await.expect("the rest of an answer")
}

/// The answers to requests that are sent together, in their order.
///
/// # Panics
/// If one has none.
pub async fn answers(to: SocketAddr, requests: &[Value]) -> Vec<Answer> {
    let mut tasks = JoinSet::new();
    for (index, request) in requests.iter().cloned().enumerate() {
        tasks.spawn(async move { (index, answer(to, &request).await) });
    }
    let mut answers = tasks.join_all().await;
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}
