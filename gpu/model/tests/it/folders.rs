//! Models in the layout of the Hugging Face hub: small ones against `transformers` (`make_folders.py`), and what is refused.

use std::fs;
use std::path::Path;

use engine::{Backend, Token};
use model::{ChatMessage, Model, PoolOptions};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::forward::Runner;
use crate::naive::Naive;
use crate::reference::{cases, directory};

#[derive(Deserialize)]
struct Case {
    folder: String,
    ids: Vec<Token>,
    /// Of every position.
    logits: Vec<Vec<f32>>,
    texts: Vec<Text>,
    chat: Chat,
}

#[derive(Deserialize)]
struct Text {
    text: String,
    /// As a prompt.
    ids: Vec<Token>,
    /// Without what is put in front of one.
    bare: Vec<Token>,
}

#[derive(Deserialize)]
struct Chat {
    messages: Vec<ChatMessage>,
    ids: Vec<Token>,
}

fn all() -> Vec<Case> {
    cases("folders.json")
}

#[track_caller]
fn check_logits(model: &Model, case: &Case) {
    let mut runner = Runner::new(model);
    for (position, expected) in case.logits.iter().enumerate() {
        runner.step(&[(&case.ids[..=position], position, &[1, 0])]);
        let found = runner.logits();
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            let error = (found - expected).abs();
            assert!(error < 1e-3, "{} at {position}: {found} {expected}", case.folder);
        }
    }
}

#[test]
fn every_kind_computes_what_the_reference_does() {
    let cases = all();
    assert_eq!(cases.len(), 5);
    for case in cases {
        check_logits(&Model::open(directory().join(&case.folder)).unwrap(), &case);
    }
}

#[test]
fn texts_and_chats_have_the_tokens_of_the_reference() {
    for case in all() {
        let model = Model::open(directory().join(&case.folder)).unwrap();
        let tokenizer = model.tokenizer();
        for Text { text, ids, bare } in case.texts {
            assert_eq!(
                tokenizer.encode_prompt(&text).unwrap(),
                ids,
                "{} {text:?}",
                case.folder
            );
            assert_eq!(
                tokenizer.encode(&text, true).unwrap(),
                bare,
                "{} {text:?}",
                case.folder
            );
            let plain = tokenizer.encode(&text, false).unwrap();
            // One kind begins as if a space were there.
            let decoded = tokenizer.decode(&plain);
            assert_eq!(decoded.trim_start(), text.trim_start(), "{}", case.folder);
        }
        let ids = model.encode_chat(&case.chat.messages).unwrap();
        assert_eq!(ids, case.chat.ids, "{}", case.folder);
    }
}

#[test]
fn a_folder_says_what_the_model_is_called_and_what_ends_its_answers() {
    for (folder, ends, bos) in [
        ("folder-llama", vec![292], Some(290)),
        ("folder-mistral", vec![2], Some(1)),
        ("folder-qwen2", vec![290, 292], None),
        ("folder-qwen3", vec![290, 292], None),
        ("folder-gemma3", vec![1, 5], Some(2)),
    ] {
        let model = Model::open(directory().join(folder)).unwrap();
        assert_eq!((model.name(), model.tokenizer().bos()), (folder, bos));
        assert_eq!(model.tokenizer().end_tokens(), ends, "{folder}");
        assert_eq!(model.file().end_tokens(), ends, "{folder}");
        assert_eq!(model.tokenizer().vocabulary(), model.config().vocabulary);
    }
}

/// A copy of one of the folders, to be changed.
struct Copy(TempDir);

impl Copy {
    fn of(kind: &str) -> Self {
        let to = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(directory().join(format!("folder-{kind}"))).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.path().join(entry.file_name())).unwrap();
        }
        Self(to)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Changes a file of JSON.
    fn edit(self, name: &str, change: impl FnOnce(&mut Value)) -> Self {
        let path = self.path().join(name);
        let mut value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut value);
        fs::write(path, serde_json::to_vec(&value).unwrap()).unwrap();
        self
    }

    fn set(self, key: &str, to: Value) -> Self {
        self.edit("config.json", |config| config[key] = to)
    }

    fn write(self, name: &str, bytes: &[u8]) -> Self {
        fs::write(self.path().join(name), bytes).unwrap();
        self
    }

    fn remove(self, name: &str) -> Self {
        fs::remove_file(self.path().join(name)).unwrap();
        self
    }

    /// Opens and loads it; the error's text.
    fn error(&self) -> String {
        let model = match Model::open(self.path()) {
            Ok(model) => model,
            Err(error) => return error.to_string(),
        };
        let pool = PoolOptions {
            blocks: 1,
            block_tokens: 16,
        };
        match model.backend(Naive::default(), pool) {
            Ok(_) => "nothing is wrong".to_owned(),
            Err(error) => error.to_string(),
        }
    }
}

#[track_caller]
fn refused(copy: &Copy, expected: &str) {
    let error = copy.error();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn what_older_files_say_in_other_words_is_understood() {
    let old = |kind: &str, change: fn(&mut Value)| {
        let case = all()
            .into_iter()
            .find(|case| case.folder.ends_with(kind))
            .unwrap();
        let copy = Copy::of(kind).edit("config.json", |config| {
            config.as_object_mut().unwrap().remove("rope_parameters");
            config.as_object_mut().unwrap().remove("layer_types");
            change(config);
        });
        check_logits(&Model::open(copy.path()).unwrap(), &case);
    };
    old("llama", |config| {
        config["rope_theta"] = json!(500.0);
        config["rope_scaling"] = json!({"type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                        "original_max_position_embeddings": 32});
    });
    old("mistral", |config| config["head_dim"] = Value::Null);
    old("qwen2", |config| config["max_window_layers"] = json!(1));
    old("gemma3", |config| {
        config["rope_theta"] = json!(1e6);
        config["rope_local_base_freq"] = json!(100.0);
        config["rope_scaling"] = json!({"rope_type": "linear", "factor": 8.0});
        config["sliding_window_pattern"] = json!(2);
    });
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
        ("vocab_size", json!(200), "is token 2"),
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
    refused(&Copy::of("llama"), "nothing is wrong");
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
    // A template may also stand with the tokenizer, alone or with others.
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

#[test]
fn workers_with_another_window_do_not_pair() {
    let hash = |copy: &Copy| {
        let pool = PoolOptions {
            blocks: 1,
            block_tokens: 16,
        };
        let model = Model::open(copy.path()).unwrap();
        model.backend(Naive::default(), pool).unwrap().spec().layout_hash
    };
    let plain = hash(&Copy::of("mistral"));
    assert_eq!(plain, hash(&Copy::of("mistral")));
    assert_ne!(plain, hash(&Copy::of("mistral").set("sliding_window", json!(9))));
    assert_ne!(
        plain,
        hash(&Copy::of("mistral").set("sliding_window", Value::Null))
    );
}
