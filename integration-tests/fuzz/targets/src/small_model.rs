//! A made-up model that can spell every byte, with control tokens that lie in wait for whoever quotes them.

use std::sync::{Arc, LazyLock};

use model::Model;

use crate::builder::Builder;

/// Templates as they are found in models: plain ChatML; trimmed contents and a rule (Llama 3's); slices, loops from behind and
/// splits (Qwen's).
pub(crate) const TEMPLATES: [&str; 3] = [
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}\
     {% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}\
     {{ '<|im_start|>' ~ messages[0].content | trim ~ '<|im_end|>' }}{% else %}{% set loop_messages = messages %}{% endif %}\
     {% for message in loop_messages %}{% if message['role'] == 'nobody' %}{{ raise_exception('who is that?') }}{% endif %}\
     {{ '<|im_start|>' + message['role'] + '\n\n' + message['content'] | trim + '<|im_end|>' }}{% endfor %}",
    "{%- set ns = namespace(last=-1) %}{%- for message in messages[::-1] %}{%- if ns.last < 0 and message.role == 'user' %}\
     {%- set ns.last = messages|length - 1 - loop.index0 %}{%- endif %}{%- endfor %}{%- for message in messages %}\
     {%- set content = message.content.split('</think>')[-1].lstrip('\n') %}\
     {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>\n' }}{%- endfor %}\
     {%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}",
];

/// Control tokens: those of real models, and some that overlap.
const CONTROLS: [&str; 7] = [
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<a>",
    "a>b",
    "éé",
    "</s>",
];
/// Matched like a control token, but text.
const USER_DEFINED: &str = "<think>";
/// Merges, best first.
const MERGES: [&str; 4] = ["a b", "Ġ a", "Ġa b", "< |"];

/// The character of a byte in vocabularies of bytes: printable ones stand for themselves.
fn alphabet() -> Vec<String> {
    let plain = |byte: u8| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let mut next = 256;
    let mut character = |byte: u8| {
        if plain(byte) {
            return char::from(byte);
        }
        next += 1;
        char::from_u32(next - 1).unwrap()
    };
    (0..=255).map(|byte| character(byte).to_string()).collect()
}

/// A whole model file, but for its tensors.
pub fn small_model_file(template: Option<&str>) -> Vec<u8> {
    builder(template).build()
}

fn builder(template: Option<&str>) -> Builder {
    let mut tokens = alphabet();
    tokens.extend(MERGES.map(|merge| merge.replace(' ', "")));
    let mut kinds = vec![1; tokens.len()];
    tokens.extend(CONTROLS.map(str::to_owned));
    kinds.extend([3; CONTROLS.len()]);
    tokens.push(USER_DEFINED.to_owned());
    kinds.push(4);
    let end = kinds.iter().position(|kind| *kind == 3).unwrap() + 1;
    let builder = Builder::default()
        .text("general.architecture", "llama")
        .u32("llama.block_count", 1)
        .u32("llama.embedding_length", 8)
        .u32("llama.attention.head_count", 2)
        .u32("llama.attention.head_count_kv", 1)
        .u32("llama.feed_forward_length", 16)
        .u32("llama.context_length", 4096)
        .f32("llama.attention.layer_norm_rms_epsilon", 1e-5)
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", "smollm")
        .texts("tokenizer.ggml.tokens", &tokens)
        .i32s("tokenizer.ggml.token_type", &kinds)
        .texts("tokenizer.ggml.merges", &MERGES)
        .u32("tokenizer.ggml.eos_token_id", u32::try_from(end).unwrap())
        .tensor("t", &[4, 2], &[0.5; 8]);
    match template {
        Some(template) => builder.text("tokenizer.chat_template", template),
        None => builder,
    }
}

/// The model with each of the [`TEMPLATES`], opened once.
pub(crate) static MODELS: LazyLock<[Arc<Model>; 3]> =
    LazyLock::new(|| TEMPLATES.map(|template| Arc::new(open(&small_model_file(Some(template))).unwrap())));

/// Opens these bytes as a gateway opens a model file.
pub(crate) fn open(bytes: &[u8]) -> Result<Model, model::OpenError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    Model::open(file.path())
}
