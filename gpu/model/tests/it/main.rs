//! Tests against the real default model and the reference files beside them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod builder;
mod folder_copy;
mod folders;
mod folders_refused;
mod forward;
mod gguf;
mod naive;
mod reference;
mod small;
mod template;
mod tokenizer;
