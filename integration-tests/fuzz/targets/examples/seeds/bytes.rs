//! Seeds of what is bytes on a wire, or a list of operations.

use std::path::Path;

use crate::Seed;

pub(crate) fn seeds() -> Vec<Seed> {
    [frames(), kv_messages(), operations()].concat()
}

/// The golden frames of every message of the hellos' and of the newest version, and their payloads.
fn frames() -> Vec<Seed> {
    [wire::HELLO_VERSION, wire::VERSION].map(frames_of).concat()
}

fn frames_of(version: u16) -> Vec<Seed> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../transport/wire/tests/golden")
        .join(version.to_string());
    let mut seeds = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        if name == "variants" {
            for line in text.lines() {
                let (variant, hex) = line.split_once(' ').unwrap();
                let variant: String = variant.chars().filter(char::is_ascii_alphanumeric).collect();
                seeds.push(("wire_frame", format!("variant-{variant}"), from_hex(hex)));
            }
            continue;
        }
        let frame = from_hex(&text);
        if name.contains("hello") {
            seeds.push(("hello", name.clone(), frame[16..].to_vec()));
        }
        seeds.push(("wire_frame", name, frame));
    }
    seeds
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// The four messages, by the table of their layout.
fn kv_messages() -> Vec<Seed> {
    let start = [&1_u32.to_le_bytes()[..], &7_u64.to_le_bytes()].concat();
    let key = [
        &0x11_u64.to_le_bytes()[..],
        &0x22_u64.to_le_bytes(),
        &3_u32.to_le_bytes(),
    ]
    .concat();
    let read = |runs: &[u32]| {
        let count = u32::try_from(runs.len()).unwrap();
        let asked = [
            &42_u128.to_le_bytes()[..],
            &5_u32.to_le_bytes(),
            &4096_u64.to_le_bytes(),
            &count.to_le_bytes(),
        ]
        .concat();
        let runs: Vec<u8> = runs.iter().flat_map(|run| run.to_le_bytes()).collect();
        [&start[..], &key, &asked, &runs].concat()
    };
    let data = [
        &start[..],
        &key,
        &1_u32.to_le_bytes(),
        &5_u32.to_le_bytes(),
        &99_u64.to_le_bytes(),
    ]
    .concat();
    vec![
        ("kv_message", "read".to_owned(), read(&[1, 5, 2])),
        ("kv_message", "read-much".to_owned(), read(&[65_536])),
        ("kv_message", "read-too-much".to_owned(), read(&[65_536, 1])),
        ("kv_message", "data".to_owned(), data),
        (
            "kv_message",
            "refuse".to_owned(),
            [&start[..], &2_u32.to_le_bytes()].concat(),
        ),
        ("kv_message", "cancel".to_owned(), start.clone()),
    ]
}

/// Operations are four bytes each: what, about whom, and two numbers.
fn list(target: &'static str, name: &str, head: &[u8], ops: &[&[[u8; 4]]]) -> Seed {
    let ops = ops.concat().concat();
    (target, name.to_owned(), [head, &ops].concat())
}

fn operations() -> Vec<Seed> {
    // Two rooms of one text: the second shares what the first has completed; closed under a hold, and released.
    let shared: &[[u8; 4]] = &[
        [0, 9, 4, 0x0c],
        [2, 9, 0, 0],
        [4, 9, 4, 0],
        [0, 17, 4, 0x1c],
        [1, 17, 2, 0],
        [5, 9, 0, 0],
        [3, 9, 0, 0],
        [5, 17, 0, 0],
        [0, 25, 8, 0],
    ];
    // A generation that was here, one before it, and more than there is.
    let stale: &[[u8; 4]] = &[
        [0, 10, 4, 0],
        [5, 10, 0, 0],
        [0, 9, 4, 0],
        [0, 10, 4, 0],
        [0, 11, 16, 0],
    ];
    let offers: &[[u8; 4]] = &[
        [0, 1, 0xc3, 4],
        [2, 1, 15, 1],
        [4, 1, 0, 0],
        [6, 1, 0, 0],
        [2, 1, 15, 1],
        [5, 1, 0, 0],
        [0, 1, 0x43, 9],
    ];
    let full: Vec<[u8; 4]> = (0..8).map(|who| [0, who, 0x41, who]).collect();
    let lists = vec![
        list("ledger_ops", "shared", &[7, 5], &[shared]),
        list("ledger_ops", "stale", &[15, 0], &[stale]),
        list("ledger_ops", "small", &[0, 1], &[shared, stale]),
        list("offer_ops", "one", &[], &[offers]),
        list("offer_ops", "again", &[], &[offers, offers]),
        list("offer_ops", "full", &[], &[&full]),
    ];
    [lists, stays()].concat()
}

fn stays() -> Vec<Seed> {
    // Prefill, publish, release.
    let prefill: &[[u8; 4]] = &[
        [0, 0x10, 3, 0x20],
        [5, 0x10, 0, 8],
        [6, 0x10, 3, 0],
        [9, 0x10, 0, 0],
        [0, 0x10, 6, 0],
        [9, 0x10, 1, 0],
    ];
    // Reserve, pull, decode, grow, finish, close.
    let decode: &[[u8; 4]] = &[
        [0, 0x20, 0, 0x21],
        [3, 0x20, 0, 0],
        [9, 0x20, 2, 0],
        [7, 0x20, 3, 0],
        [8, 0x20, 6, 1],
        [7, 0x20, 3, 255],
        [4, 0x20, 0, 0],
        [13, 0, 9, 0],
        [15, 0, 100, 100],
    ];
    vec![
        list("host_ops", "prefill", &[0], &[prefill]),
        list("host_ops", "decode", &[0], &[decode]),
        list("host_ops", "mixed", &[1], &[prefill, decode]),
    ]
}
