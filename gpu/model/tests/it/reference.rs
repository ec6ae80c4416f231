//! The default model, and what an independent implementation says about it (`tests/reference/make.py`).

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use model::{ChatMessage, FetchOptions, Model, ModelSource, default_cache_dir, fetch};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The default model's file; fetched on first use.
pub(crate) fn path() -> PathBuf {
    fetch(
        &ModelSource::Default,
        &FetchOptions::new(default_cache_dir()),
        &mut |_| (),
    )
    .unwrap()
}

/// The default model, opened once.
pub(crate) fn model() -> Arc<Model> {
    static MODEL: LazyLock<Arc<Model>> = LazyLock::new(|| Arc::new(Model::open(path()).unwrap()));
    Arc::clone(&MODEL)
}

/// A reference file.
#[derive(Deserialize)]
struct File<T> {
    cases: Vec<T>,
}

#[derive(Deserialize)]
pub(crate) struct Encoding {
    pub(crate) text: String,
    pub(crate) special: bool,
    pub(crate) ids: Vec<u32>,
}

#[derive(Deserialize)]
pub(crate) struct Rendering {
    pub(crate) messages: Vec<ChatMessage>,
    pub(crate) add_generation_prompt: bool,
    pub(crate) text: String,
}

#[derive(Deserialize)]
pub(crate) struct Greedy {
    pub(crate) text: String,
    pub(crate) ids: Vec<u32>,
    pub(crate) generated: Vec<u32>,
    pub(crate) answer: String,
    pub(crate) first: Logits,
}

/// Logits of the first generated position.
#[derive(Deserialize)]
pub(crate) struct Logits {
    pub(crate) max_abs: f32,
    pub(crate) top: Vec<(usize, f32)>,
    pub(crate) sample_stride: usize,
    pub(crate) sample: Vec<f32>,
}

/// The folder of the reference files.
pub(crate) fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/reference")
}

/// The cases of a reference file.
pub(crate) fn cases<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let path = directory().join(name);
    let file: File<T> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(!file.cases.is_empty());
    file.cases
}
