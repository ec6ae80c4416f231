//! Small made-up models: loading, and the parts that the default model does not have.

use engine::{Backend, Token};
use model::{ChatError, Llama, LoadError, Model, OpenError, PoolOptions};
use proptest::prelude::*;
use serde::Deserialize;

use crate::builder::Builder;
use crate::forward::Runner;
use crate::naive::Naive;
use crate::reference::{cases, directory};

/// Numbers without a pattern.
fn noise(seed: u32, len: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(0x0019_660D).wrapping_add(0x3C6E_F35F);
        (state ^ state >> 16).wrapping_mul(0x9E37_79B9)
    };
    #[allow(clippy::cast_precision_loss)]
    (0..len).map(|_| next() as f32 / u32::MAX as f32 - 0.5).collect()
}

/// Width 8, 2 query heads, 1 key head of 4 numbers, feed-forward 16, one layer, 4 tokens.
fn builder(architecture: &str) -> Builder {
    builder_with(architecture, &noise(0, 32))
}

/// The same with another embedding.
fn builder_with(architecture: &str, embedding: &[f32]) -> Builder {
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
    builder = builder.tensor("token_embd.weight", &[8, 4], embedding);
    let tensors: [(&str, &[u64]); 10] = [
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
    for (seed, (name, dims)) in (1..).zip(tensors) {
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

/// Puts a model on the naive device, with room for one block.
fn load(model: &Model) -> Result<Llama<Naive>, LoadError> {
    let pool = PoolOptions {
        blocks: 1,
        block_tokens: 16,
    };
    model.backend(Naive::default(), pool)
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
    assert!(matches!(model.encode_chat(&[]), Err(ChatError::NoTemplate)));
    let found = logits(builder("llama"));
    assert!(found.len() == 4 && found.iter().all(|l| l.is_finite()));
}

/// One token of the vocabulary has a broken embedding: whoever has it in the prompt gets no token, whoever is in the batch with them
/// gets what they get alone.
#[test]
fn numbers_that_are_none_fail_the_sequence_they_are_in() {
    let mut embedding = noise(0, 32);
    embedding[8..16].fill(f32::NAN);
    let broken = builder_with("llama", &embedding).tensor("output.weight", &[8, 4], &noise(98, 32));
    let mut runner = Runner::new(&open(broken).unwrap());
    let (good, bad): (&[Token], &[Token]) = (&[0, 2, 2], &[0, 1, 2]);
    let alone = runner.try_step(&[(good, 0, &[0])]);
    assert!(alone[0].is_ok(), "{alone:?}");
    let sampled = runner.try_step(&[(bad, 0, &[1]), (good, 0, &[2]), (bad, 0, &[3])]);
    assert_eq!(sampled[1], alone[0]);
    for bad in [&sampled[0], &sampled[2]] {
        assert!(bad.as_ref().is_err_and(|why| why.0.contains("NaN")), "{bad:?}");
    }
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
        let error = load(&open(builder).unwrap()).unwrap_err().to_string();
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
    check(
        builder("llama").tensor("rope_freqs.weight", &[2], &[1.0, 0.0]),
        "tensor `rope_freqs.weight`: holds 0",
    );
}

#[test]
fn a_file_that_shrinks_while_it_is_used_is_told_by_tensor() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let bytes = builder("llama").build();
    std::fs::write(file.path(), &bytes).unwrap();
    let model = Model::open(file.path()).unwrap();
    file.as_file().set_len(bytes.len() as u64 - 100).unwrap();
    let error = load(&model).unwrap_err().to_string();
    assert!(
        error.contains("tensor `blk.0.ffn_down.weight`: cannot be read"),
        "{error}"
    );
}

#[test]
fn workers_whose_keys_mean_something_else_do_not_pair() {
    let hash = |builder: Builder| load(&open(builder).unwrap()).unwrap().spec().layout_hash;
    let base = |base: f32| hash(builder("llama").f32("llama.rope.freq_base", base));
    assert_eq!(base(10_000.0), hash(builder("llama")));
    assert_ne!(base(10_000.0), base(20_000.0));
    assert_ne!(base(10_000.0), hash(builder("qwen2")));
    assert_ne!(
        base(10_000.0),
        hash(builder("llama").u32("llama.rope.dimension_count", 2))
    );
}

#[test]
fn shapes_that_cannot_be_are_refused() {
    let check = |builder: Builder, expected: &str| {
        let error = open(builder).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    // A key given twice would be refused for that.
    let llama = |name: &str, value: u32| {
        let sizes = [
            ("block_count", 1),
            ("embedding_length", 1 << 24),
            ("attention.head_count", 1),
            ("feed_forward_length", 16),
            ("context_length", 64),
        ];
        let base = Builder::default()
            .text("general.architecture", "llama")
            .f32("llama.attention.layer_norm_rms_epsilon", 1e-5)
            .texts("tokenizer.ggml.tokens", &["a"])
            .u32(&format!("llama.{name}"), value);
        let others = sizes.into_iter().filter(|(other, _)| *other != name);
        others.fold(base, |b, (name, value)| b.u32(&format!("llama.{name}"), value))
    };
    check(llama("block_count", 5000), "more than 4096 layers");
    check(llama("block_count", 0), "`llama.block_count` is 0");
    check(llama("embedding_length", u32::MAX), "not between 1 and");
    // One head as wide as the stream.
    check(llama("rope.dimension_count", 4), "numbers a head");
    check(llama("attention.head_count_kv", 3), "not a multiple");
    check(
        builder("llama").f32("llama.rope.scaling.factor", 4.0),
        "rope scaling (`llama.rope.scaling.factor`)",
    );
    check(
        builder("llama").f32("llama.rope.scale_linear", 2.0),
        "rope scaling",
    );
    check(
        builder("llama").u32("llama.rope.scaling.type", 1),
        "rope scaling `an unsigned number`",
    );
    check(
        builder("llama").u32("tokenizer.chat_template", 1),
        "`tokenizer.chat_template` should be a text",
    );
    open(builder("llama").f32("llama.rope.scaling.factor", 1.0)).unwrap();
}

/// Bytes of the header of `small-llama.gguf`; numbers follow.
const HEADER: usize = 2400;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Bytes changed in the header of a good model: it opens and loads, or is refused by an error.
    #[test]
    fn a_changed_model_is_loaded_or_refused(changes in prop::collection::vec((0..HEADER, any::<u8>()), 1..4)) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut bytes = std::fs::read(directory().join("small-llama.gguf")).unwrap();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        std::fs::write(file.path(), bytes).unwrap();
        if let Ok(model) = Model::open(file.path()) {
            // An error is as good: what counts is that it is one.
            let _ = load(&model);
            let _ = model.tokenizer().encode("hello<end>", true);
        }
    }
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
    let tokens = |model: &str, tokens: &[&str]| {
        base()
            .text("tokenizer.ggml.model", model)
            .texts("tokenizer.ggml.tokens", tokens)
    };
    check(tokens("bert", &["a"]), "`bert` is not supported");
    check(tokens("gpt2", &["a"]), "`tokenizer.ggml.pre` should be a text");
    check(
        tokens("gpt2", &["a"]).text("tokenizer.ggml.pre", "unheard-of"),
        "pre-tokenizer `unheard-of`",
    );
    let cut = |texts: &[&str]| tokens("gpt2", texts).text("tokenizer.ggml.pre", "gpt-2");
    check(cut(&["a"]), "tokenizer.ggml.merges");
    let merged = |texts: &[&str], merges: &[&str]| cut(texts).texts("tokenizer.ggml.merges", merges);
    check(merged(&["a", "a"], &[]), "twice");
    check(merged(&["a"], &["ab"]), "not two parts");
    for merge in ["aa bb", "aa a", "a aa", "a x"] {
        check(merged(&["a", "aa", "bb"], &[merge]), &format!("merge `{merge}`"));
    }
    check(merged(&["日"], &[]), "byte alphabet");
    check(
        merged(&["a"], &[]).i32s("tokenizer.ggml.token_type", &[1, 1]),
        "2 token types for 1 tokens",
    );
}
