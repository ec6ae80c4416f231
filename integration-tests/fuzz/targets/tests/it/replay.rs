//! The corpus and the targets.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use fuzz_targets::{TARGETS, Target};

use crate::changes::change;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus")
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Every input of a target's corpus.
fn inputs(target: &Target) -> Vec<(String, Vec<u8>)> {
    let folder = corpus().join(target.name);
    let read = |name: String| {
        let bytes = std::fs::read(folder.join(&name)).unwrap();
        (name, bytes)
    };
    names(&folder).into_iter().map(read).collect()
}

/// Runs one input; says which it was where a demand is not met.
fn run(target: &Target, what: &str, bytes: &[u8]) {
    let ended = catch_unwind(AssertUnwindSafe(|| (target.run)(bytes)));
    assert!(
        ended.is_ok(),
        "{} fails with {what}: {}",
        target.name,
        bytes.escape_ascii()
    );
}

fn check(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let inputs = inputs(target);
    assert!(inputs.len() > 2, "{name} has no corpus to speak of");
    for (file, bytes) in &inputs {
        run(target, file, bytes);
    }
    run(target, "nothing", &[]);
    for seed in 0..target.changes {
        let nth = |at: u64| &inputs[usize::try_from(at % inputs.len() as u64).unwrap()].1;
        let bytes = change(nth(seed), nth(seed * 7 + 3), seed);
        run(target, &format!("change {seed}"), &bytes);
    }
}

macro_rules! replays {
    ($($name:ident)*) => {
        $(#[test] fn $name() { check(stringify!($name)); })*
        const REPLAYED: &[&str] = &[$(stringify!($name)),*];
    };
}

replays! {
    wire_frame hello kv_message http_body chat_content chat_template text_out gguf_header model_file model_name ledger_ops host_ops
    offer_ops safetensors_header
}

#[test]
fn every_target_has_a_binary_a_corpus_and_a_test() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    let replayed: BTreeSet<String> = REPLAYED.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(replayed, targets);
    assert_eq!(names(&corpus()).into_iter().collect::<BTreeSet<_>>(), targets);
    let binaries = names(&corpus().join("../fuzz_targets"));
    let stems = binaries.iter().filter_map(|name| name.strip_suffix(".rs"));
    assert_eq!(stems.map(str::to_owned).collect::<BTreeSet<_>>(), targets);
    let manifest = std::fs::read_to_string(corpus().join("../Cargo.toml")).unwrap();
    for target in &targets {
        assert!(
            manifest.contains(&format!("name = \"{target}\"\n")),
            "{target} is not in the manifest"
        );
    }
}

#[test]
fn the_same_number_is_the_same_change() {
    let (bytes, other) = (b"some bytes of an input".as_slice(), b"and others".as_slice());
    for seed in 0..1_000 {
        assert_eq!(change(bytes, other, seed), change(bytes, other, seed));
        change(&[], &[], seed);
    }
    let distinct: BTreeSet<Vec<u8>> = (0..1_000).map(|seed| change(bytes, other, seed)).collect();
    assert!(distinct.len() > 800, "{}", distinct.len());
}
