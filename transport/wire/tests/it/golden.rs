//! The bytes of every message, as committed, in a folder for each version. Whoever changes one changes the protocol, and must raise the
//! version; the bytes of an older one stay as long as it is spoken. A run with `UPDATE_GOLDEN` set writes them anew.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use wire::{
    EncodeError, HELLO_VERSION, Hello, Kind, MIN_VERSION, Message, Order, Role, ToGateway, ToWorker, VERSION,
};

use crate::samples;

fn to_hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunks(32) {
        for byte in line {
            write!(text, "{byte:02x}").unwrap();
        }
        text.push('\n');
    }
    text
}

/// What the file holds; a run with `UPDATE_GOLDEN` set puts `made` there first.
fn committed(version: u16, name: &str, made: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/golden/{version}"))
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    std::fs::read_to_string(&path).unwrap_or_default()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// Bytes → value → bytes, and value → bytes, all the same.
fn check<M: Message + PartialEq>(version: u16, sample: &M) -> Kind {
    let kind = sample.kind();
    let name = format!("{:02}-{}.hex", kind.number(), kind.name());
    let made = sample.encode(version).unwrap();
    let committed = committed(version, &name, &to_hex(made.as_bytes()));
    assert_eq!(
        to_hex(made.as_bytes()),
        committed,
        "tests/golden/{version}/{name} should hold the first of these"
    );
    let bytes = from_hex(&committed);
    let read = M::decode_frame(version, &bytes).unwrap();
    assert_eq!(&read, sample, "{name}");
    assert_eq!(read.encode(version).unwrap().as_bytes(), bytes, "{name}");
    kind
}

#[test]
fn every_message_has_its_committed_bytes() {
    let mut seen = BTreeSet::new();
    seen.insert(check(HELLO_VERSION, &samples::hello()));
    seen.extend(samples::replies().iter().map(|reply| check(HELLO_VERSION, reply)));
    for version in MIN_VERSION..=VERSION {
        let (orders, news) = (samples::orders(), samples::news());
        let known = orders.iter().filter(|order| order.kind().since() <= version);
        seen.extend(known.map(|order| check(version, order)));
        let known = news.iter().filter(|news| news.kind().since() <= version);
        seen.extend(known.map(|news| check(version, news)));
    }
    assert_eq!(
        seen,
        Kind::ALL.iter().copied().collect(),
        "every kind has a sample"
    );
}

/// A message that its peer's version does not have is neither sent nor taken.
#[test]
fn what_is_newer_than_the_version_is_no_message_of_it() {
    check_newer(&ToWorker::KeepTrace { seq: 7 }, 3);
    let key = samples::key();
    let why = "its engine hangs".to_owned();
    check_newer(&ToGateway::Reason { key, why }, 3);
    let admin = "[::1]:9090".to_owned();
    check_newer(&ToGateway::About { admin }, 3);
    let (n, order) = (3, Order::Drain);
    check_newer(&ToWorker::Order { n, order }, 4);
    check_newer(&ToGateway::Ordered { n, refused: None }, 4);
}

/// `first` is the first version that has it.
fn check_newer<M: Message + PartialEq>(message: &M, first: u16) {
    let last = first - 1;
    let refused = message.encode(last).unwrap_err();
    assert!(
        matches!(
            refused,
            EncodeError::TooNew { since, version, .. } if (since, version) == (first, last)
        ),
        "{refused}"
    );
    let mut bytes = message.encode(first).unwrap().as_bytes().to_vec();
    assert_eq!(&M::decode_frame(first, &bytes).unwrap(), message);
    // The same bytes under the older version.
    let older = ToWorker::Release { key: samples::key() }.encode(last).unwrap();
    let newer = ToWorker::Release { key: samples::key() }.encode(first).unwrap();
    for (byte, (old, new)) in bytes
        .iter_mut()
        .zip(older.as_bytes().iter().zip(newer.as_bytes()))
    {
        if old != new {
            *byte = *old;
        }
    }
    let refused = M::decode_frame(last, &bytes).unwrap_err();
    assert_eq!(refused, wire::DecodeError::UnknownKind(message.kind().number()));
}

/// A line a variant: its name, and the bytes of the message with it.
#[test]
fn every_variant_within_a_message_has_its_committed_bytes() {
    for version in MIN_VERSION..=VERSION {
        check_variants(version);
    }
}

fn check_variants(version: u16) {
    let mut made = String::new();
    for (name, sample) in samples::variants() {
        let frame = sample.encode(version).unwrap();
        assert_eq!(
            ToGateway::decode_frame(version, frame.as_bytes()).unwrap(),
            sample
        );
        let hex = to_hex(frame.as_bytes()).replace('\n', "");
        writeln!(made, "{name} {hex}").unwrap();
    }
    for order in samples::order_variants().filter(|order| order.kind().since() <= version) {
        let frame = order.encode(version).unwrap();
        assert_eq!(ToWorker::decode_frame(version, frame.as_bytes()).unwrap(), order);
        writeln!(made, "{order:?} {}", to_hex(frame.as_bytes()).replace('\n', "")).unwrap();
    }
    for role in Role::ALL {
        let hello = Hello {
            role,
            ..samples::hello()
        };
        let frame = hello.encode(HELLO_VERSION).unwrap();
        assert_eq!(
            Hello::decode_frame(HELLO_VERSION, frame.as_bytes()).unwrap(),
            hello
        );
        writeln!(made, "{role:?} {}", to_hex(frame.as_bytes()).replace('\n', "")).unwrap();
    }
    let committed = committed(version, "variants.txt", &made);
    for (made, committed) in made.lines().zip(committed.lines()) {
        assert_eq!(made, committed, "tests/golden/{version}/variants.txt");
    }
    assert_eq!(made.lines().count(), committed.lines().count());
}

#[test]
fn kinds_are_found_by_number() {
    for kind in Kind::ALL {
        assert_eq!(Kind::from_number(kind.number()), Some(*kind));
    }
    assert_eq!(Kind::from_number(0), None);
    assert_eq!(Kind::from_number(u16::MAX), None);
}
