//! GGUF files: what a good one gives, and that no bad one can do more than be refused.

use model::{Gguf, GgufError, Model, Value};
use proptest::prelude::*;

use crate::builder::Builder;
use crate::reference;

fn small() -> Builder {
    Builder::default()
        .text("general.architecture", "llama")
        .u32("n", 7)
        .f32("x", 0.5)
        .texts("words", &["a", "é"])
        .i32s("numbers", &[-1, 2])
        .tensor("t", &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        .tensor("u", &[1], &[9.0])
}

fn check_refused(what: &str, bytes: &[u8]) {
    let result = Gguf::check(bytes);
    assert!(
        matches!(result, Err(GgufError::Damaged { .. } | GgufError::NotGguf(_))),
        "{what}: {result:?}"
    );
}

#[test]
fn values_and_tensors_come_back() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), small().build()).unwrap();
    let gguf = Gguf::open(file.path()).unwrap();
    assert_eq!(
        (
            gguf.text("general.architecture").unwrap(),
            gguf.unsigned("n").unwrap()
        ),
        ("llama", 7)
    );
    assert_eq!(
        gguf.array("numbers").unwrap(),
        [Value::Signed(-1), Value::Signed(2)]
    );
    assert_eq!(gguf.array("words").unwrap()[1].as_text(), Some("é"));
    assert!(matches!(gguf.float("n"), Err(GgufError::Metadata { .. })));
    assert!(matches!(gguf.text("missing"), Err(GgufError::Metadata { .. })));
    let mut bytes = Vec::new();
    let info = gguf.tensor("t").unwrap();
    gguf.read_tensor(info, &mut bytes).unwrap();
    assert_eq!((info.dims.as_slice(), bytes.len()), (&[3, 2][..], 24));
    assert_eq!(bytes[20..], 6.0_f32.to_le_bytes());
    gguf.read_tensor(gguf.tensor("u").unwrap(), &mut bytes).unwrap();
    assert_eq!(bytes, 9.0_f32.to_le_bytes());
    assert!(gguf.tensor("v").is_none());
}

#[test]
fn the_default_model_is_read() {
    let gguf = Gguf::open(&reference::path()).unwrap();
    assert_eq!(
        (gguf.tensors().count(), gguf.text("tokenizer.ggml.pre").unwrap()),
        (272, "smollm")
    );
    let config = reference::model().config().clone();
    assert_eq!(
        (
            config.layers,
            config.width,
            config.heads,
            config.kv_heads,
            config.head_dim
        ),
        (30, 576, 9, 3, 64)
    );
    assert_eq!(
        (config.ffn_width, config.vocabulary, config.context_tokens),
        (1536, 49_152, 8192)
    );
    assert!(config.rope.interleaved && config.rope.base == 100_000.0);
}

#[test]
fn every_cut_is_refused_without_reading_past_it() {
    let bytes = small().build();
    Gguf::check(&bytes).unwrap();
    for len in 0..bytes.len() - 32 {
        check_refused("cut", &bytes[..len]);
    }
}

#[test]
fn contradictions_are_refused() {
    let huge = u64::MAX.to_le_bytes();
    let with = |kind: u32, value: &[u8]| Builder::default().raw("k", kind, value).build();
    let at = |offset: usize, value: &[u8]| {
        let mut bytes = small().build();
        bytes[offset..offset + value.len()].copy_from_slice(value);
        bytes
    };
    check_refused("no magic", &at(0, b"GGML"));
    check_refused("version 1", &at(4, &1_u32.to_le_bytes()));
    check_refused("version 0", &at(4, &0_u32.to_le_bytes()));
    check_refused("big-endian", &at(4, &3_u32.to_be_bytes()));
    check_refused("tensors without end", &at(8, &huge));
    check_refused("entries without end", &at(16, &huge));
    check_refused("text without end", &with(8, &huge));
    check_refused("not UTF-8", &with(8, &[1, 0, 0, 0, 0, 0, 0, 0, 0xff]));
    check_refused("unknown type", &with(13, &[0; 64]));
    check_refused("not a truth value", &with(7, &[2]));
    check_refused(
        "array without end",
        &with(9, &[&0_u32.to_le_bytes()[..], &huge].concat()),
    );
    check_refused(
        "array of an unknown type",
        &with(9, &[&99_u32.to_le_bytes()[..], &[0; 64]].concat()),
    );
    let nested = [9_u32.to_le_bytes().to_vec(), 1_u64.to_le_bytes().to_vec()]
        .concat()
        .repeat(50);
    check_refused("nested arrays", &with(9, &nested));
    check_refused("key twice", &Builder::default().u32("k", 1).u32("k", 2).build());
    check_refused(
        "tensor twice",
        &Builder::default()
            .tensor("t", &[1], &[0.0])
            .tensor("t", &[1], &[0.0])
            .build(),
    );
    check_refused("no dimensions", &Builder::default().tensor("t", &[], &[]).build());
    check_refused(
        "five dimensions",
        &Builder::default().tensor("t", &[1; 5], &[0.0]).build(),
    );
    check_refused(
        "a tensor behind the end",
        &Builder::default().tensor("t", &[100], &[0.0]).build(),
    );
    check_refused(
        "overflowing dimensions",
        &Builder::default()
            .tensor("t", &[1 << 40, 1 << 40], &[0.0])
            .build(),
    );
    let mut twice = Builder::default()
        .tensor("t", &[100], &[0.0; 100])
        .tensor("u", &[100], &[0.0; 100])
        .build();
    let whole = twice.len();
    check_refused("a tensor cut off", &twice[..whole - 32]);
    // The offset of `u`, the last number before the padding.
    let at = twice
        .windows(8)
        .rposition(|w| w == 416_u64.to_le_bytes())
        .unwrap();
    twice[at..at + 8].fill(0);
    twice.truncate(whole - 416);
    check_refused("a tensor on top of another", &twice);
    check_refused("alignment 0", &small().u32("general.alignment", 0).build());
    check_refused("alignment 3", &small().u32("general.alignment", 3).build());
}

#[test]
fn a_model_that_cannot_be_run_says_why() {
    let check = |builder: Builder, expected: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), builder.build()).unwrap();
        let error = Model::open(file.path()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(
        Builder::default().text("general.architecture", "mamba"),
        "`mamba` is not supported; supported are llama",
    );
    check(
        small(),
        "`llama.embedding_length` should be an unsigned number, but is missing",
    );
    check(
        small().text("llama.rope.scaling.type", "yarn"),
        "rope scaling `yarn`",
    );
    let missing = Model::open("/no/such/file.gguf").unwrap_err().to_string();
    assert!(missing.contains("/no/such/file.gguf"), "{missing}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Bytes changed anywhere: the answer is a header or an error, never a panic and never a tensor outside the file.
    #[test]
    fn a_changed_file_is_read_or_refused(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = small().build();
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok((_, tensors)) = Gguf::check(&bytes) {
            prop_assert!(tensors.iter().all(|t| t.offset <= bytes.len() as u64));
        }
    }

    /// Whole numbers replaced by extreme ones, where sizes and counts are.
    #[test]
    fn extreme_numbers_are_refused(at in 4_usize..400, number in prop_oneof![Just(u64::MAX), Just(1 << 63), Just(1 << 40), Just(0)]) {
        let mut bytes = small().build();
        let at = at.min(bytes.len() - 8);
        bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        if let Ok((_, tensors)) = Gguf::check(&bytes) {
            prop_assert!(tensors.iter().all(|t| t.offset <= bytes.len() as u64));
        }
    }
}
