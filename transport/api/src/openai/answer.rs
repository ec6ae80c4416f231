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

/// Stands in for a text. It is in no name of a field and needs no escape.
const MARK: &str = "<text>";

/// One answer: its name, and how far each of its continuations has come.
pub(crate) struct Answer<S> {
    id: String,
    created_s: u64,
    model: String,
    include_usage: bool,
    continuations: Vec<Continuation>,
    shape: PhantomData<S>,
}

/// What stands before and after the text in every piece of plain text: most of a stream.
struct Frame {
    before: String,
    after: String,
}

struct Continuation {
    /// Made with the first of them.
    frame: Option<Frame>,
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
                frame: None,
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

    /// A piece of text as JSON, at the end of `out`. Whether there was something to say.
    pub(crate) fn write_text(
        &mut self,
        index: u32,
        text: String,
        logprobs: &[TokenLogprob],
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(one) = self.continuations.get_mut(index as usize) else {
            return false;
        };
        if text.is_empty() && logprobs.is_empty() {
            return false;
        }
        let offset = one.chars;
        one.chars += text.chars().count();
        let frame = if logprobs.is_empty() {
            one.frame.take().or_else(|| self.frame(index))
        } else {
            None
        };
        let Some(frame) = frame else {
            let logprobs = Some(logprobs).filter(|list| !list.is_empty());
            let piece = self.piece_json(S::text(index, text, logprobs, offset));
            out.extend_from_slice(piece.as_bytes());
            return true;
        };
        out.extend_from_slice(frame.before.as_bytes());
        // Memory takes all that is written, and a string cannot fail to serialise.
        let _ = serde_json::to_writer(&mut *out, &text);
        out.extend_from_slice(frame.after.as_bytes());
        if let Some(one) = self.continuations.get_mut(index as usize) {
            one.frame = Some(frame);
        }
        true
    }

    /// What a piece of plain text has around its text.
    fn frame(&self, index: u32) -> Option<Frame> {
        // Nothing but the text comes after it: what a client may have chosen, its model's name, comes before.
        let piece = self.piece_json(S::text(index, MARK.to_owned(), None, 0));
        let (before, after) = piece.rsplit_once(MARK)?;
        Some(Frame {
            before: before.strip_suffix('"')?.to_owned(),
            after: after.strip_prefix('"')?.to_owned(),
        })
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

#[cfg(test)]
mod tests {
    use std::marker::PhantomData;

    use super::{Answer, Continuation};
    use crate::openai::shape::{Chat, Completion, Shape};
    use crate::submit::TokenLogprob;

    fn answer<S: Shape>(include_usage: bool) -> Answer<S> {
        let one = || Continuation {
            frame: None,
            echo: None,
            opened: false,
            chars: 0,
        };
        Answer {
            id: "id".to_owned(),
            created_s: 7,
            model: "a <text> \"model\" \\".to_owned(),
            include_usage,
            continuations: vec![one(), one()],
            shape: PhantomData,
        }
    }

    const TEXTS: [&str; 7] = [
        "a",
        "",
        "<text>",
        "\"<text>\"",
        "\u{0}\n\t\u{1b}\u{7f}",
        "é 漢字 🦀 \u{2028}",
        "</script>\\/",
    ];

    /// What is written by its frame is what is written whole.
    fn check<S: Shape>(include_usage: bool) {
        let mut answer = answer::<S>(include_usage);
        let token = TokenLogprob {
            token: "t".to_owned(),
            bytes: b"t".to_vec(),
            logprob: -0.5,
            top: Vec::new(),
        };
        let mut offset = 0;
        for text in TEXTS.iter().cycle().take(20) {
            for logprobs in [&[][..], std::slice::from_ref(&token)] {
                let mut out = b"x".to_vec();
                let said = answer.write_text(1, (*text).to_owned(), logprobs, &mut out);
                let some = Some(logprobs).filter(|list| !list.is_empty());
                let whole = answer.piece_json(S::text(1, (*text).to_owned(), some, offset));
                offset += text.chars().count();
                assert_eq!(said, !(text.is_empty() && some.is_none()));
                let expected = if said { format!("x{whole}") } else { "x".to_owned() };
                assert_eq!(String::from_utf8(out).unwrap(), expected);
            }
        }
        assert!(!answer.write_text(2, "a".to_owned(), &[], &mut Vec::new()));
    }

    #[test]
    fn a_piece_of_text_is_the_same_however_it_is_written() {
        for include_usage in [false, true] {
            check::<Chat>(include_usage);
            check::<Completion>(include_usage);
        }
    }
}
