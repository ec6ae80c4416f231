//! What all pieces of one answer share, and how they are written as JSON.

use std::marker::PhantomData;
use std::sync::Arc;

use serde::Serialize;

use super::common::Common;
use super::shape::{Shape, Usage};
use crate::ids::{mint, now_s};
use crate::submit::TokenLogprob;

/// Which program made the answer.
const FINGERPRINT: &str = concat!("innkeeper-", env!("CARGO_PKG_VERSION"));

/// One answer: its name, and how far each of its continuations has come.
pub(crate) struct Answer<S> {
    id: String,
    created_s: u64,
    model: String,
    include_usage: bool,
    continuations: Vec<Continuation>,
    shape: PhantomData<S>,
}

struct Continuation {
    /// The prompt, where it is to be echoed and has not been yet; the same for all of its continuations.
    echo: Option<Arc<str>>,
    opened: bool,
    chars: usize,
}

#[derive(Serialize)]
struct Envelope<'a, C> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    system_fingerprint: &'static str,
    choices: &'a [C],
    /// Outer `None`: not there. In a stream that was asked for usage it is `null` but in the last piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Option<Usage>>,
}

impl<S: Shape> Answer<S> {
    pub(crate) fn new(common: &Common, prompts: usize, echoes: Vec<String>) -> Self {
        let n = common.n as usize;
        let mut continuations = Vec::with_capacity(prompts * n);
        let mut echoes = echoes.into_iter();
        for _ in 0..prompts {
            let echo: Option<Arc<str>> = echoes.next().map(Arc::from);
            continuations.extend((0..n).map(|_| Continuation {
                echo: echo.clone(),
                opened: false,
                chars: 0,
            }));
        }
        Self {
            id: format!("{}{}", S::ID_PREFIX, mint()),
            created_s: now_s(),
            model: common.model.clone(),
            include_usage: common.include_usage,
            continuations,
            shape: PhantomData,
        }
    }

    /// The number of continuations.
    pub(crate) fn len(&self) -> usize {
        self.continuations.len()
    }

    /// The prompt this continuation is to begin with, or nothing.
    pub(crate) fn echo(&self, index: usize) -> &str {
        let one = self.continuations.get(index);
        one.and_then(|one| one.echo.as_deref()).unwrap_or_default()
    }

    /// The pieces with which a continuation begins, once.
    pub(crate) fn opening(&mut self, index: u32) -> Vec<S::Piece> {
        let Some(one) = self
            .continuations
            .get_mut(index as usize)
            .filter(|one| !one.opened)
        else {
            return Vec::new();
        };
        one.opened = true;
        let mut pieces: Vec<S::Piece> = S::opening(index).into_iter().collect();
        if let Some(echo) = one.echo.take() {
            one.chars = echo.chars().count();
            pieces.push(S::text(index, echo.as_ref().to_owned(), None, 0));
        }
        pieces
    }

    /// A piece of text; `None` where there is nothing to say.
    pub(crate) fn text(&mut self, index: u32, text: String, logprobs: &[TokenLogprob]) -> Option<S::Piece> {
        let one = self.continuations.get_mut(index as usize)?;
        if text.is_empty() && logprobs.is_empty() {
            return None;
        }
        let offset = one.chars;
        one.chars += text.chars().count();
        Some(S::text(
            index,
            text,
            Some(logprobs).filter(|list| !list.is_empty()),
            offset,
        ))
    }

    /// A piece of the stream as JSON.
    pub(crate) fn piece_json(&self, piece: S::Piece) -> String {
        self.json(S::PIECE, &[piece], self.include_usage.then_some(None))
    }

    /// The piece that says what was used; `None` where nobody asked.
    pub(crate) fn usage_json(&self, usage: Usage) -> Option<String> {
        self.include_usage
            .then(|| self.json::<S::Piece>(S::PIECE, &[], Some(Some(usage))))
    }

    /// The whole answer as JSON.
    pub(crate) fn whole_json(&self, choices: &[S::Choice], usage: Usage) -> String {
        self.json(S::WHOLE, choices, Some(Some(usage)))
    }

    fn json<C: Serialize>(
        &self,
        object: &'static str,
        choices: &[C],
        usage: Option<Option<Usage>>,
    ) -> String {
        let envelope = Envelope {
            id: &self.id,
            object,
            created: self.created_s,
            model: &self.model,
            system_fingerprint: FINGERPRINT,
            choices,
            usage,
        };
        // Strings, numbers and lists of them cannot fail to serialise.
        serde_json::to_string(&envelope).unwrap_or_default()
    }
}
