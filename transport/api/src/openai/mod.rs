//! OpenAI's API: its requests, its answers, its errors.

mod answer;
mod body;
mod chat;
mod common;
mod completions;
mod error;
mod feed;
mod fields;
mod generate;
mod models;
mod reading;
mod shape;
mod sse;
mod whole;

pub(crate) use chat::chat_completions;
pub(crate) use completions::completions;
pub use error::ApiError;
pub(crate) use models::{list_models, one_model};
pub(crate) use reading::Reading;
