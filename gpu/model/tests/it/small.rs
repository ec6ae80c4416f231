//! Small made-up models: loading, and the parts that the default model does not have.

use engine::Token;
use model::{Model, OpenError, PoolOptions};
use serde::Deserialize;

use crate::builder::Builder;
use crate::forward::Runner;
use crate::naive::Naive;
use crate::reference::{cases, directory};

/// Numbers without a pattern.
fn noise(seed: u32, len: usize) -> Vec<f32> {
    let numbers = (0..u32::try_from(len).unwrap()).map(|i| model::philox4x32([i, 0, 0, 0], [seed, 0])[0]);
    #[allow(clippy::cast_precision_loss)]
    numbers.map(|n| n as f32 / u32::MAX as f32 - 0.5).collect()
}

/// Width 8, 2 query heads, 1 key head of 4 numbers, feed-forward 16, one layer, 4 tokens.
fn builder(architecture: &str) -> Builder {
    let key = |name: &str| format!("{architecture}.{name}");
    let tokens = ["a", "b", "ab", "<end>"];
    let mut builder = Builder::default()
        .text("general.architecture", architecture)
        .u32(&key("block_count"), 1)
        .u32(&key("embedding_length"), 8)
        .u32(&key("attention.head_count"), 2)
        .u32(&key("attention.head_count_kv"), 1)
        .u32(&key("feed_forward_length"), 16)
        .u32(&key("context_length"), 64)
        .f32(&key("attention.layer_norm_rms_epsilon"), 1e-5)
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", "gpt-2")
        .texts("tokenizer.ggml.tokens", &tokens)
        .i32s("tokenizer.ggml.token_type", &[1, 1, 1, 3])
        .texts("tokenizer.ggml.merges", &["a b"])
        .u32("tokenizer.ggml.eos_token_id", 3);
    let tensors: [(&str, &[u64]); 11] = [
        ("token_embd.weight", &[8, 4]),
        ("output_norm.weight", &[8]),
        ("blk.0.attn_norm.weight", &[8]),
        ("blk.0.ffn_norm.weight", &[8]),
        ("blk.0.attn_q.weight", &[8, 8]),
        ("blk.0.attn_k.weight", &[8, 4]),
        ("blk.0.attn_v.weight", &[8, 4]),
        ("blk.0.attn_output.weight", &[8, 8]),
        ("blk.0.ffn_gate.weight", &[8, 16]),
        ("blk.0.ffn_up.weight", &[8, 16]),
        ("blk.0.ffn_down.weight", &[16, 8]),
    ];
    for (seed, (name, dims)) in (0..).zip(tensors) {
        let len = usize::try_from(dims.iter().product::<u64>()).unwrap();
        builder = builder.tensor(name, dims, &noise(seed, len));
    }
    builder
}

fn open(builder: Builder) -> Result<Model, OpenError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), builder.build()).unwrap();
    Model::open(file.path())
}

fn logits(builder: Builder) -> Vec<f32> {
    let mut runner = Runner::new(&open(builder).unwrap());
    runner.step(&[(&[0, 1, 2], 0, &[0])]);
    runner.logits()
}

/// Logits of every position of a file beside the reference, by `transformers` on the same file.
#[derive(Deserialize)]
struct Reference {
    file: String,
    ids: Vec<Token>,
    logits: Vec<Vec<f32>>,
}

#[test]
fn every_architecture_computes_what_the_reference_does() {
    for case in cases::<Reference>("small.json") {
        let model = Model::open(directory().join(&case.file)).unwrap();
        let mut runner = Runner::new(&model);
        for (position, expected) in case.logits.iter().enumerate() {
            runner.step(&[(&case.ids[..=position], position, &[1, 0])]);
            for (found, expected) in runner.logits().iter().zip(expected) {
                assert!(
                    (found - expected).abs() < 1e-3,
                    "{} at {position}: {found} {expected}",
                    case.file
                );
            }
        }
    }
}

#[test]
fn a_small_model_opens_and_runs() {
    let model = open(builder("llama")).unwrap();
    assert_eq!(model.tokenizer().encode("abba<end>", true).unwrap(), [2, 1, 0, 3]);
    assert!(model.template().is_none());
    let found = logits(builder("llama"));
    assert!(found.len() == 4 && found.iter().all(|l| l.is_finite()));
}

#[test]
fn biases_norms_heads_and_factors_are_used_where_the_file_has_them() {
    let plain = logits(builder("qwen2"));
    assert_ne!(plain, logits(builder("llama")), "another order of rotated pairs");
    for (name, dims) in [
        ("blk.0.attn_q.bias", 8),
        ("blk.0.attn_v.bias", 4),
        ("blk.0.attn_q_norm.weight", 4),
        ("blk.0.attn_k_norm.weight", 4),
        ("rope_freqs.weight", 2),
    ] {
        let with = |scale: f32| {
            let numbers: Vec<f32> = noise(99, dims).iter().map(|n| scale * n + 2.0).collect();
            logits(builder("qwen2").tensor(name, &[dims as u64], &numbers))
        };
        assert_ne!(with(1.0), plain, "{name}");
    }
    let head = builder("qwen2").tensor("output.weight", &[8, 4], &noise(98, 32));
    assert_ne!(logits(head), plain, "output.weight");
}

#[test]
fn tensors_that_do_not_fit_are_refused_by_name() {
    let check = |builder: Builder, expected: &str| {
        let options = PoolOptions {
            blocks: 1,
            block_tokens: 16,
        };
        let error = open(builder)
            .unwrap()
            .backend(Naive::default(), options)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    };
    let wrong = builder("llama").tensor("blk.0.attn_q.bias", &[7], &[0.0; 7]);
    check(
        wrong,
        "tensor `blk.0.attn_q.bias`: has dimensions [7], where 8 × 1 are needed",
    );
    check(
        builder("llama").u32("llama.attention.key_length", 6),
        "tensor `blk.0.attn_q.weight`",
    );
}

#[test]
fn vocabularies_that_contradict_themselves_are_refused() {
    let base = || {
        Builder::default()
            .text("general.architecture", "llama")
            .u32("llama.block_count", 1)
            .u32("llama.embedding_length", 8)
            .u32("llama.attention.head_count", 2)
            .u32("llama.feed_forward_length", 16)
            .u32("llama.context_length", 64)
            .f32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    };
    let check = |builder: Builder, expected: &str| {
        let error = open(builder).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    let tokens = |b: Builder, model: &str, tokens: &[&str]| {
        b.text("tokenizer.ggml.model", model)
            .texts("tokenizer.ggml.tokens", tokens)
    };
    check(tokens(base(), "bert", &["a"]), "`bert` is not supported");
    check(tokens(base(), "gpt2", &["a"]), "tokenizer.ggml.merges");
    check(
        tokens(base(), "gpt2", &["a", "a"]).texts("tokenizer.ggml.merges", &[""; 0]),
        "twice",
    );
    check(
        tokens(base(), "gpt2", &["a"]).texts("tokenizer.ggml.merges", &["ab"]),
        "not two parts",
    );
    check(
        tokens(base(), "gpt2", &["日"]).texts("tokenizer.ggml.merges", &[""; 0]),
        "byte alphabet",
    );
    let types = tokens(base(), "gpt2", &["a"]).texts("tokenizer.ggml.merges", &[""; 0]);
    check(
        types.clone().i32s("tokenizer.ggml.token_type", &[1, 1]),
        "2 token types for 1 tokens",
    );
    check(
        types.text("tokenizer.ggml.pre", "unheard-of"),
        "pre-tokenizer `unheard-of`",
    );
}
