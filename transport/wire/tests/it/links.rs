//! What a link rests on before its first message: versions, names, roles, headers.

use wire::limits::{MAX_HELLO_BYTES, MAX_PAYLOAD_BYTES};
use wire::{
    DecodeError, Header, HeaderError, Hello, Kind, Message, Role, ToGateway, ToWorker, VERSION,
    agree_version, check_node_name,
};

use crate::samples;

#[test]
fn the_newest_version_that_both_speak_is_agreed() {
    let check = |ours, theirs, agreed| {
        assert_eq!(agree_version(ours, theirs), agreed, "{ours:?} and {theirs:?}");
        assert_eq!(agree_version(theirs, ours), agreed, "{theirs:?} and {ours:?}");
    };
    check((2, 2), (2, 2), Some(2));
    check((2, 5), (3, 4), Some(4));
    check((2, 5), (4, 9), Some(5));
    check((2, 5), (5, 9), Some(5));
    check((2, 5), (6, 9), None);
    check((0, 0), (1, 1), None);
}

#[test]
fn a_node_has_a_name_of_which_a_certificate_can_speak() {
    for (name, fits) in [
        ("decode-0.rack_1", true),
        ("", false),
        ("two words", false),
        ("*", false),
        ("münchen", false),
    ] {
        let found = check_node_name(name);
        assert_eq!(found.is_ok(), fits, "{found:?}");
    }
    assert!(check_node_name(&"n".repeat(63)).is_ok());
    assert!(check_node_name(&"n".repeat(64)).is_err());
}

/// They are in certificates.
#[test]
fn roles_have_their_names() {
    let names = Role::ALL.map(|role| (role.name(), role.to_string()));
    let want = ["gateway", "prefill", "decode", "mixed"].map(|name| (name, name.to_owned()));
    assert_eq!(names, want);
}

/// What a frame's header says goes through bytes; what is beyond the limit does not.
fn check_header(length: u32, limit: Option<u32>) {
    let header = Header {
        version: 7,
        kind: 999,
        length,
    };
    let want = match limit {
        None => Ok(header),
        Some(limit) => Err(HeaderError::TooLarge { bytes: length, limit }),
    };
    assert_eq!(Header::parse(&header.to_bytes()), want);
}

#[test]
fn headers_are_read_as_they_were_written() {
    for length in [0, 1, 0x0001_0203, MAX_PAYLOAD_BYTES] {
        check_header(length, None);
    }
    check_header(MAX_PAYLOAD_BYTES + 1, Some(MAX_PAYLOAD_BYTES));
    check_header(u32::MAX, Some(MAX_PAYLOAD_BYTES));
}

/// A payload of nothing but zeros of this length, as `M`: whether it is its length that is wrong.
fn check_length<M: Message>(kind: Kind, length: u32, is_too_long: bool) {
    let header = Header {
        version: VERSION,
        kind: kind.number(),
        length,
    };
    match M::decode(VERSION, header, &vec![0; length as usize]) {
        Err(DecodeError::Header(HeaderError::TooLarge { bytes, limit })) => {
            assert_eq!((bytes, limit), (length, M::MAX_BYTES));
            assert!(is_too_long, "{kind}: {length}");
        }
        other => assert!(!is_too_long, "{kind}: {length}: {other:?}"),
    }
}

/// A hello comes from somebody who is not known yet.
#[test]
fn a_hello_is_held_to_less_than_what_comes_later() {
    assert_eq!((Hello::MAX_BYTES, ToWorker::MAX_BYTES), (16_384, 4_194_304));
    check_length::<Hello>(Kind::Hello, MAX_HELLO_BYTES, false);
    check_length::<Hello>(Kind::Hello, MAX_HELLO_BYTES + 1, true);
    check_length::<Hello>(Kind::Hello, MAX_PAYLOAD_BYTES, true);
    check_length::<ToWorker>(Kind::Close, MAX_HELLO_BYTES + 1, false);
    check_length::<ToGateway>(Kind::Closed, MAX_PAYLOAD_BYTES, false);
    check_length::<ToGateway>(Kind::Closed, MAX_PAYLOAD_BYTES + 1, true);
}

#[test]
fn an_order_says_which_attempt_it_is_about() {
    let of_none = [Kind::Heartbeat, Kind::Goodbye, Kind::KeepTrace, Kind::Order];
    for order in samples::orders() {
        let want = (!of_none.contains(&order.kind())).then(samples::key);
        assert_eq!(order.key(), want, "{order:?}");
    }
}
