//! Folders that are damaged, or hold what is not computed here: refused, and told why.

use std::fs;

use model::Model;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::folder_copy::Copy;
use crate::reference::directory;

#[track_caller]
fn refused(copy: &Copy, expected: &str) {
    let error = copy.error();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn what_is_not_computed_here_is_refused() {
    for (key, value, expected) in [
        (
            "model_type",
            json!("mixtral"),
            "model type `mixtral` is not supported",
        ),
        (
            "model_type",
            Value::Null,
            "config.json: `model_type` should be a text, but is null",
        ),
        ("hidden_act", json!("relu"), "`hidden_act` `relu`"),
        (
            "quantization_config",
            json!({"bits": 4}),
            "`quantization_config` is not supported",
        ),
        (
            "hidden_size",
            json!(-1),
            "`hidden_size` should be an unsigned number, but is -1",
        ),
        ("hidden_size", json!(0), "`hidden_size` is 0"),
        ("num_hidden_layers", json!(5000), "more than 4096 layers"),
        ("num_key_value_heads", json!(3), "not a multiple"),
        ("head_dim", json!(3), "rotated dimensions"),
        (
            "head_dim",
            json!(6),
            "tensor `model.layers.0.self_attn.q_proj.weight`: has dimensions [16, 16], where 24 × 16",
        ),
        (
            "vocab_size",
            json!(200),
            "tensor `model.embed_tokens.weight`: has dimensions [300, 16], where 200 × 16",
        ),
        (
            "num_hidden_layers",
            json!(3),
            "tensor `model.layers.2.self_attn.q_proj.weight`: is missing",
        ),
        (
            "num_hidden_layers",
            json!(1),
            "tensor `model.layers.1.input_layernorm.weight`: is in the files",
        ),
        (
            "rope_parameters",
            json!({"rope_type": "yarn", "rope_theta": 1.0}),
            "rope scaling `yarn`",
        ),
        (
            "rope_parameters",
            json!({"rope_type": "linear", "rope_theta": 10.0, "factor": 0}),
            "`rope_parameters.factor` should be a number above 0",
        ),
        (
            "rope_parameters",
            json!({"rope_type": "default"}),
            "`rope_parameters.rope_theta` should be a number, but is missing",
        ),
    ] {
        refused(&Copy::of("llama").set(key, value), expected);
    }
    refused(&Copy::of("llama"), "nothing is wrong");
}

#[test]
fn what_only_some_models_have_is_refused_where_it_is_not_computed() {
    let remove = |config: &mut Value| drop(config.as_object_mut().unwrap().remove("sliding_window"));
    refused(
        &Copy::of("mistral").edit("config.json", remove),
        "`sliding_window` should be a number of tokens, or null",
    );
    refused(
        &Copy::of("gemma3").set("layer_types", json!(["full_attention"])),
        "the type of every layer",
    );
    refused(
        &Copy::of("gemma3").set("layer_types", json!(["full_attention", "ssm"])),
        "type `ssm`",
    );
    refused(
        &Copy::of("gemma3").set("final_logit_softcapping", json!(30.0)),
        "`final_logit_softcapping`",
    );
    // A head of its own is not forgotten, and where there is none its absence is told.
    refused(
        &Copy::of("qwen2").set("tie_word_embeddings", json!(false)),
        "tensor `lm_head.weight`: is missing",
    );
}

#[test]
fn vocabularies_that_cannot_be_used_are_refused() {
    let edit = |kind: &str, change: fn(&mut Value)| Copy::of(kind).edit("tokenizer.json", change);
    refused(
        &Copy::of("llama").remove("tokenizer.json"),
        "there is no tokenizer.json",
    );
    refused(
        &Copy::of("llama").write("tokenizer.json", b"{"),
        "tokenizer.json: EOF",
    );
    refused(
        &edit("llama", |t| t["model"]["type"] = json!("Unigram")),
        "type `Unigram`",
    );
    refused(
        &edit("llama", |t| t["model"]["merges"][0] = json!(["a", "??"])),
        "merge `a ??`",
    );
    refused(
        &edit("llama", |t| t["model"]["merges"][0] = json!("a")),
        "merge `a` is not two parts",
    );
    refused(
        &edit("llama", |t| t["model"]["vocab"]["a"] = json!(0)),
        "the same number",
    );
    refused(
        &edit("llama", |t| t["model"]["vocab"]["zz"] = json!(999)),
        "`zz` is token 999, and the model has 300",
    );
    refused(&edit("llama", |t| t["model"]["dropout"] = json!(0.1)), "dropout");
    refused(
        &edit("llama", |t| t["normalizer"] = json!({"type": "Precompiled"})),
        "a step `Precompiled`",
    );
    refused(
        &edit("llama", |t| t["pre_tokenizer"] = Value::Null),
        "neither of bytes",
    );
    refused(
        &edit("llama", |t| t["added_tokens"][0]["lstrip"] = json!(true)),
        "`lstrip`",
    );
    refused(
        &edit("mistral", |t| t["model"]["unk_token"] = json!("??")),
        "unknown token `??`",
    );
    refused(
        &Copy::of("llama").write("chat_template.jinja", b"{% if %}"),
        "chat template",
    );
    refused(
        &Copy::of("llama").write("chat_template.jinja", b"\xff"),
        "is not UTF-8",
    );
}

#[test]
fn a_template_may_also_stand_with_the_tokenizer_alone_or_with_others() {
    let template = |value: Value| {
        let copy = Copy::of("llama").remove("chat_template.jinja");
        copy.edit("tokenizer_config.json", |config| config["chat_template"] = value)
    };
    for value in [
        json!("x"),
        json!([{"name": "tools", "template": "y"}, {"name": "default", "template": "x"}]),
    ] {
        let model = Model::open(template(value).path()).unwrap();
        assert_eq!(
            model.encode_chat(&[]).unwrap(),
            model.tokenizer().encode("x", true).unwrap()
        );
    }
    refused(
        &template(json!([])),
        "`chat_template` should be a text, or a list",
    );
}

#[test]
fn weights_that_are_damaged_or_elsewhere_are_told_by_file() {
    let weights = fs::read(directory().join("folder-llama/model.safetensors")).unwrap();
    let with = |bytes: &[u8]| Copy::of("llama").write("model.safetensors", bytes);
    refused(
        &Copy::of("llama").remove("model.safetensors"),
        "model.safetensors: No such file",
    );
    refused(&with(&weights[..7]), "it has less than 8 bytes");
    refused(
        &with(&weights[..100]),
        "is no safetensors file: its header would have",
    );
    refused(&with(&weights[..weights.len() - 1]), "bytes of numbers, and");
    refused(&with(&[&weights[..], b"x"].concat()), "bytes of numbers, and");
    refused(
        &with(&[&u64::MAX.to_le_bytes()[..], b"{}"].concat()),
        "are the most it can have",
    );
    refused(
        &with(&[&2_u64.to_le_bytes()[..], b"[]"].concat()),
        "damaged header",
    );
    refused(&with(&[&2_u64.to_le_bytes()[..], b"{}"].concat()), "is missing");

    let index = |change: fn(&mut Value)| Copy::of("qwen3").edit("model.safetensors.index.json", change);
    for (change, expected) in [
        (
            (|i| i["weight_map"]["x"] = json!("../x")) as fn(&mut Value),
            "`../x` is not the name of a file in this folder",
        ),
        (|i| i["weight_map"]["x"] = json!("/x"), "`/x` is not the name"),
        (
            |i| i["weight_map"]["x"] = json!("none.safetensors"),
            "none.safetensors: No such file",
        ),
        (
            |i| i["weight_map"]["x"] = i["weight_map"]["model.norm.weight"].clone(),
            "tensor `x` should be in model-0",
        ),
        (
            |i| i["weight_map"] = json!(7),
            "model.safetensors.index.json: invalid type",
        ),
    ] {
        refused(&index(change), expected);
    }
    let first = fs::read(directory().join("folder-qwen3/model-00001-of-00004.safetensors")).unwrap();
    let copy = Copy::of("qwen3").write("model-00002-of-00004.safetensors", &first);
    refused(&copy, "is in another file as well");
    refused(
        &Copy::of("qwen3").remove("config.json"),
        "there is no config.json",
    );
}

/// Files of a folder, and how much of each describes the model.
const DESCRIBED: [(&str, usize); 4] = [
    ("config.json", usize::MAX),
    ("tokenizer.json", usize::MAX),
    ("tokenizer_config.json", usize::MAX),
    ("model.safetensors", 1_000),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Bytes changed in a good folder: it opens and loads, or is refused by an error.
    #[test]
    fn a_changed_folder_is_loaded_or_refused(
        kind in prop::sample::select(vec!["llama", "mistral", "gemma3"]),
        changes in prop::collection::vec((0..DESCRIBED.len(), any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let copy = Copy::of(kind);
        for (file, at, byte) in changes {
            let (name, described) = DESCRIBED[file];
            let mut bytes = fs::read(copy.path().join(name)).unwrap();
            let at = at.index(bytes.len().min(described));
            // Digits among digits change what is said and not whether anything is.
            bytes[at] = if bytes[at].is_ascii_digit() { b'0' + byte % 10 } else { byte };
            fs::write(copy.path().join(name), bytes).unwrap();
        }
        // An error is as good: what counts is that it is one.
        prop_assert!(!copy.error().is_empty());
        if let Ok(model) = Model::open(copy.path()) {
            let vocabulary = model.config().vocabulary;
            for text in ["", "hello  <|im_end|>\n\né日", " <unk></s>"] {
                let tokens = model.tokenizer().encode_prompt(text).into_iter().flatten();
                prop_assert!(tokens.into_iter().all(|token| (token as usize) < vocabulary));
            }
        }
    }
}
