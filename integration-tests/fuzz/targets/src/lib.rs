//! What is demanded of whatever bytes come in: one function a target, that panics where a demand is not met.
//!
//! The same functions are run by three: `cargo fuzz` (through the crate above this one, which needs a nightly compiler) for as long as
//! one likes; the test command, over every file of `integration-tests/fuzz/corpus` and over some thousand changes of those; and
//! whoever has an input that misbehaves (`cargo run -p innkeeper-fuzz-targets --example replay -- TARGET FILE`).
//!
//! | target | bytes are | what is demanded |
//! |---|---|---|
//! | [`wire_frame`] | a frame, as it comes and with its header repaired | a message or an error; one type takes it; out and in again it is the same, and not much longer |
//! | [`hello`] | a hello or its answer, in bytes and field by field | nothing beyond a bound gets through; what may be sent can be read |
//! | [`kv_message`] | a message of the KV path | what is understood is, in bytes, what would be sent |
//! | [`http_body`] | the body of a request, and how the service answers it | never a 500 of our own; what is refused starts nothing; what starts is within every range; one end a stream |
//! | [`chat_content`] | a conversation | no message spells a control token; the text is the template's |
//! | [`chat_template`] | the template of a model file | it is refused, or renders twice the same |
//! | [`text_out`] | stop strings, and an answer in pieces | how it is cut changes nothing; no stop string gets out |
//! | [`gguf_header`] | a model file (or a safetensors file: refused as no GGUF) | refused, or every tensor lies inside the file and nothing is told twice |
//! | [`safetensors_header`] | a file of safetensors | refused, or its tensors lie one behind the other and fill it |
//! | [`model_file`] | a model file, opened as a gateway does | refused, or a shape within its limits and a tokenizer whose tokens exist |
//! | [`model_name`] | where a model is to come from | a name that names the same again, and no way out of a folder |
//! | [`ledger_ops`] | operations on a ledger | INV-02, against a model that knows who may touch what, and what is where |
//! | [`host_ops`] | what happens to a worker's host | INV-01, 02, 08, as the world of its own tests demands them |
//! | [`offer_ops`] | operations on a table of offers | what can be read is what stands; the last send is told once |
//!
//! A demand that no input could break would be no demand: each is a comparison with something computed in another way, or a bound
//! that the code has to keep by a check of its own.
#![allow(
    clippy::unwrap_used,
    reason = "a target is a test: it panics where a demand is not met"
)]

mod chat_content;
mod chat_template;
mod gguf_header;
mod hello;
mod host_ops;
mod http_body;
mod kv_message;
mod ledger_ops;
mod model_file;
mod model_name;
mod offer_ops;
mod safetensors_header;
mod small_model;
mod text_out;
mod wire_frame;

// Of the tests of `room` and `model`: the very files, so that what they demand is demanded here too.
#[allow(dead_code, reason = "the tests of `room` need more of it")]
#[path = "../../../../actors/room/tests/it/host_kit.rs"]
mod host_kit;
#[allow(dead_code, reason = "the tests of `room` need more of it")]
#[path = "../../../../actors/room/tests/it/host_world.rs"]
mod host_world;

#[allow(dead_code, reason = "the tests of `model` need more of it")]
#[path = "../../../../gpu/model/tests/it/builder.rs"]
mod builder;

pub use chat_content::chat_content;
pub use chat_template::chat_template;
pub use gguf_header::gguf_header;
pub use hello::hello;
pub use host_ops::host_ops;
pub use http_body::http_body;
pub use kv_message::kv_message;
pub use ledger_ops::ledger_ops;
pub use model_file::model_file;
pub use model_name::model_name;
pub use offer_ops::offer_ops;
pub use safetensors_header::safetensors_header;
pub use small_model::small_model_file;
pub use text_out::text_out;
pub use wire_frame::wire_frame;

/// One target.
#[derive(Copy, Clone, Debug)]
pub struct Target {
    /// Its name: that of its function, of its binary and of its folder in the corpus.
    pub name: &'static str,
    /// What it demands.
    pub run: fn(&[u8]),
    /// Changes of its corpus that the test command tries; fewer where one takes long.
    pub changes: u64,
}

macro_rules! targets {
    ($($name:ident $changes:literal,)*) => {
        /// Every target.
        pub const TARGETS: &[Target] = &[$(Target {
            name: stringify!($name),
            run: $name,
            changes: $changes,
        }),*];
    };
}

targets! {
    wire_frame 20_000,
    hello 20_000,
    kv_message 20_000,
    http_body 4_000,
    chat_content 2_000,
    chat_template 2_000,
    text_out 4_000,
    gguf_header 20_000,
    safetensors_header 20_000,
    model_file 500,
    model_name 20_000,
    ledger_ops 2_000,
    host_ops 1_000,
    offer_ops 5_000,
}
