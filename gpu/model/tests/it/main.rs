//! Tests against the real default model and the reference files beside them.

mod builder;
mod forward;
mod gguf;
mod naive;
mod reference;
mod small;
mod template;
mod tokenizer;
