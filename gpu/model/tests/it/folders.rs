//! Models in the layout of the Hugging Face hub: small ones against `transformers` (`make_folders.py`).

use engine::{Backend, Token};
use model::{ChatMessage, Model, PoolOptions};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::folder_copy::Copy;
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
