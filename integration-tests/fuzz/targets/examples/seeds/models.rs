//! Seeds of model files.

use fuzz_targets::small_model_file;

use crate::Seed;
use crate::builder::Builder;

pub(crate) fn seeds() -> Vec<Seed> {
    let mut seeds = Vec::new();
    let mut both = |name: &str, bytes: &[u8]| {
        seeds.push(("gguf_header", name.to_owned(), bytes.to_vec()));
        seeds.push(("model_file", name.to_owned(), bytes.to_vec()));
    };
    let template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}";
    let whole = small_model_file(Some(template));
    both("whole", &whole);
    both("cut", &whole[..whole.len() / 2]);
    both("llama", &tiny("llama", "llama-bpe").build());
    both(
        "qwen2",
        &tiny("qwen2", "qwen2")
            .i32s("tokenizer.ggml.token_type", &[1, 1, 1, 3])
            .build(),
    );
    let old = tiny("llama", "gpt-2")
        .text("llama.rope.scaling.type", "none")
        .f32("llama.rope.freq_base", 5e5);
    both("gpt-2", &old.build());
    both("every-type", &every_type().build());
    both(
        "safetensors",
        &safetensors(
            r#"{"__metadata__":{"format":"pt"},"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#,
            8,
        ),
    );
    for (name, header, bytes) in HEADERS {
        seeds.push(("safetensors_header", name.to_owned(), safetensors(header, bytes)));
    }
    seeds
}

/// Headers of safetensors, and how many bytes follow.
const HEADERS: [(&str, &str, usize); 7] = [
    (
        "several",
        r#"{"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]}}"#,
        32,
    ),
    (
        "metadata",
        r#"{"__metadata__":{"format":"pt"},"t":{"dtype":"F16","shape":[],"data_offsets":[0,2]}}"#,
        2,
    ),
    (
        "no-numbers",
        r#"{"t":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]}}"#,
        0,
    ),
    ("none", "{}", 0),
    (
        "other-types",
        r#"{"t":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}}    "#,
        2,
    ),
    (
        "gap",
        r#"{"t":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#,
        8,
    ),
    (
        "too-large",
        r#"{"t":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,18446744073709551615]}}"#,
        8,
    ),
];

/// A model of three letters.
fn tiny(architecture: &str, words: &str) -> Builder {
    let key = |name: &str| format!("{architecture}.{name}");
    Builder::default()
        .text("general.architecture", architecture)
        .u32("general.alignment", 32)
        .u32(&key("block_count"), 1)
        .u32(&key("embedding_length"), 8)
        .u32(&key("attention.head_count"), 2)
        .u32(&key("attention.head_count_kv"), 1)
        .u32(&key("attention.key_length"), 4)
        .u32(&key("rope.dimension_count"), 4)
        .u32(&key("feed_forward_length"), 16)
        .u32(&key("context_length"), 64)
        .f32(&key("attention.layer_norm_rms_epsilon"), 1e-5)
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", words)
        .texts("tokenizer.ggml.tokens", &["a", "b", "ab", "</s>"])
        .texts("tokenizer.ggml.merges", &["a b"])
        .u32("tokenizer.ggml.bos_token_id", 0)
        .u32("tokenizer.ggml.eos_token_id", 3)
        .raw("tokenizer.ggml.add_bos_token", 7, &[1])
        .text(
            "tokenizer.chat_template",
            "{{ bos_token }}{{ messages[0].content }}",
        )
        .tensor("t", &[2, 2], &[1.0; 4])
        .tensor("u", &[1], &[1.0])
}

/// A value of every type that metadata can have.
fn every_type() -> Builder {
    let mut builder = Builder::default();
    let widths: [(u32, usize); 12] = [
        (0, 1),
        (1, 1),
        (2, 2),
        (3, 2),
        (4, 4),
        (5, 4),
        (6, 4),
        (7, 1),
        (10, 8),
        (11, 8),
        (12, 8),
        (8, 8),
    ];
    for (kind, width) in widths {
        builder = builder.raw(&format!("k{kind}"), kind, &vec![0; width]);
        let array = [&kind.to_le_bytes()[..], &2_u64.to_le_bytes(), &vec![0; 2 * width]].concat();
        builder = builder.raw(&format!("a{kind}"), 9, &array);
    }
    let empty = [&4_u32.to_le_bytes()[..], &0_u64.to_le_bytes()].concat();
    let nested = [&9_u32.to_le_bytes()[..], &1_u64.to_le_bytes(), &empty].concat();
    builder.raw("nested", 9, &nested)
}

/// A file of safetensors.
fn safetensors(header: &str, bytes: usize) -> Vec<u8> {
    [
        &(header.len() as u64).to_le_bytes()[..],
        header.as_bytes(),
        &vec![0; bytes],
    ]
    .concat()
}
