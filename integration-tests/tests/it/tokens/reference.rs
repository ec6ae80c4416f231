//! The committed answers of an independent implementation.

use std::path::Path;

use engine::Token;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A prompt and its greedy answer.
#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) text: String,
    /// The prompt.
    pub(crate) ids: Vec<Token>,
    /// The answer: 64 tokens, or fewer of which the last is an end token.
    pub(crate) generated: Vec<Token>,
    /// Logits that give the answer's first token.
    pub(crate) first: FirstLogits,
}

/// Some of the logits of a position.
#[derive(Deserialize)]
pub(crate) struct FirstLogits {
    /// The largest magnitude of all.
    pub(crate) max_abs: f32,
    /// The largest, as (token, logit).
    top: Vec<(usize, f32)>,
    /// Every `sample_stride`th.
    sample: Vec<f32>,
    sample_stride: usize,
}

impl Case {
    /// The known logits of the first position, as (token, logit).
    pub(crate) fn first_logits(&self) -> impl Iterator<Item = (usize, f32)> {
        let tokens = (0..).step_by(self.first.sample_stride);
        self.first
            .top
            .iter()
            .copied()
            .chain(tokens.zip(self.first.sample.iter().copied()))
    }
}

/// All cases of the default model.
pub(crate) fn cases() -> Vec<Case> {
    read("greedy.json")
}

/// The cases of a reference file.
pub(crate) fn read<T: DeserializeOwned>(name: &str) -> Vec<T> {
    #[derive(Deserialize)]
    struct File<T> {
        cases: Vec<T>,
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpu/model/tests/reference");
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    serde_json::from_str::<File<T>>(&text).unwrap().cases
}
