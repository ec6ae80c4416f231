//! One answer's tokens on their way to text: characters made whole, stop strings found and withheld.

use std::sync::Arc;

use api::{TokenLogprob, TopLogprob};
use model::{Detokenizer, StopFinder, Tokenizer};
use wire::TokenOut;

/// The text of one answer so far.
pub(crate) struct TextStream {
    tokenizer: Arc<Tokenizer>,
    detokenizer: Detokenizer,
    stops: StopFinder,
    tokens: u32,
    stopped: bool,
}

/// What a batch of tokens added.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Piece {
    /// Text that is certain now.
    pub(crate) text: String,
    /// One entry a token, where asked for.
    pub(crate) logprobs: Vec<TokenLogprob>,
    /// A stop string was found: the answer ends here.
    pub(crate) stopped: bool,
}

impl TextStream {
    pub(crate) fn new(tokenizer: &Arc<Tokenizer>, stops: &[String]) -> Self {
        Self {
            tokenizer: Arc::clone(tokenizer),
            detokenizer: Detokenizer::new(Arc::clone(tokenizer)),
            stops: StopFinder::new(stops),
            tokens: 0,
            stopped: false,
        }
    }

    /// Tokens of the answer, up to and including the one that completed a stop string.
    pub(crate) fn tokens(&self) -> u32 {
        self.tokens
    }

    /// Whether a stop string has ended the answer.
    pub(crate) fn stopped(&self) -> bool {
        self.stopped
    }

    /// Takes the next tokens. After a stop string everything is dropped.
    pub(crate) fn push(&mut self, tokens: &[TokenOut]) -> Piece {
        let mut piece = Piece::default();
        for out in tokens {
            if self.stopped {
                break;
            }
            self.tokens += 1;
            let step = self.stops.push(&self.detokenizer.push(out.token));
            piece.text.push_str(&step.text);
            piece.logprobs.extend(self.logprobs(out));
            self.stopped = step.stopped.is_some();
        }
        piece.stopped = self.stopped;
        piece
    }

    /// The answer is whole: what was held back.
    pub(crate) fn finish(&mut self) -> String {
        if self.stopped {
            return String::new();
        }
        let step = self.stops.push(&self.detokenizer.flush());
        let mut text = step.text;
        text.push_str(&self.stops.flush());
        text
    }

    fn logprobs(&self, out: &TokenOut) -> Option<TokenLogprob> {
        let logprobs = out.logprobs.as_ref()?;
        let spell = |token| {
            let bytes = self.tokenizer.token_bytes(token).to_vec();
            (String::from_utf8_lossy(&bytes).into_owned(), bytes)
        };
        let (token, bytes) = spell(out.token);
        let top = logprobs.top.iter().map(|(token, logprob)| {
            let (token, bytes) = spell(*token);
            TopLogprob {
                token,
                bytes,
                logprob: *logprob,
            }
        });
        Some(TokenLogprob {
            token,
            bytes,
            logprob: logprobs.sampled,
            top: top.collect(),
        })
    }
}
