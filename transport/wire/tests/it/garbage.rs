//! Bytes from somebody else: each kind of wrong has its error, and none of them panics.

use proptest::prelude::*;
use wire::{DecodeError, Hello, HelloReply, Message, RoomTokens, ToGateway, ToWorker, VERSION};

use crate::samples;

fn frame() -> Vec<u8> {
    samples::orders()[1].encode(VERSION).unwrap().as_bytes().to_vec()
}

/// The error of a frame after a change to its bytes.
fn check(change: impl FnOnce(&mut Vec<u8>), expected: &str) {
    let mut bytes = frame();
    change(&mut bytes);
    let error = ToWorker::decode_frame(VERSION, &bytes).unwrap_err();
    assert!(error.to_string().contains(expected), "{error} lacks {expected}");
}

#[test]
fn every_wrong_has_its_error() {
    check(|bytes| bytes[0] = b'X', "a frame begins with");
    check(|bytes| bytes[4] = 9, &format!("version 9, agreed was {VERSION}"));
    check(
        |bytes| bytes[6..8].copy_from_slice(&999u16.to_le_bytes()),
        "no message has the kind 999",
    );
    check(|bytes| bytes[6] = 33, "reserved is not expected here");
    check(
        |bytes| bytes[6] = 21,
        "the header says close, the payload is reserve",
    );
    check(
        |bytes| bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes()),
        "4294967295 bytes is announced",
    );
    check(|bytes| bytes[12] = 1, "reserved bytes of the header");
    check(
        |bytes| bytes.truncate(bytes.len() - 1),
        "bytes of payload, announced were",
    );
    check(|bytes| bytes.push(0), "bytes of payload, announced were");
    check(|bytes| bytes.truncate(7), "7 bytes of payload");
    check(|bytes| bytes[16..].fill(0xff), "not an archive");
}

#[test]
fn content_is_checked_after_structure() {
    let mut bytes = samples::orders()[2].encode(VERSION).unwrap().as_bytes().to_vec();
    let temperature = 0.5f32.to_le_bytes();
    let at = bytes.windows(4).position(|window| window == temperature).unwrap();
    bytes[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    let error = ToWorker::decode_frame(VERSION, &bytes).unwrap_err();
    assert!(matches!(error, DecodeError::Invalid { .. }), "{error}");
}

/// A frame of a few bytes must not become a message of many: two lists that share their entries are none.
#[test]
fn no_bytes_are_told_twice() {
    let room = |from| RoomTokens {
        key: samples::key(),
        from,
        tokens: vec![samples::token(); 3],
        finish: None,
    };
    let batch = vec![room(0x1111), room(0x2222)];
    let frame = ToGateway::Tokens { batch }.encode(VERSION).unwrap();
    let mut bytes = frame.as_bytes().to_vec();
    // Behind `from` is where the list is, from there.
    let place = |from: u32| {
        let from = from.to_le_bytes();
        bytes.windows(4).position(|window| window == from).unwrap() + 4
    };
    let (first, second) = (place(0x1111), place(0x2222));
    let pointer = i32::from_le_bytes(bytes[first..first + 4].try_into().unwrap());
    let pointer = pointer - i32::try_from(second - first).unwrap();
    bytes[second..second + 4].copy_from_slice(&pointer.to_le_bytes());
    let error = ToGateway::decode_frame(VERSION, &bytes).unwrap_err();
    assert!(matches!(error, DecodeError::Archive { .. }), "{error}");
}

#[test]
fn a_payload_anywhere_in_memory_is_read() {
    let frame = frame();
    for shift in 0..16 {
        let mut memory = vec![0xaa; shift];
        memory.extend_from_slice(&frame);
        assert_eq!(
            ToWorker::decode_frame(VERSION, &memory[shift..]).unwrap(),
            samples::orders()[1]
        );
    }
}

/// Whatever comes out of bytes goes into bytes again: nothing beyond a bound gets through.
fn decode_as_all(bytes: &[u8]) {
    fn decode<M: Message>(bytes: &[u8]) {
        if let Ok(message) = M::decode_frame(VERSION, bytes) {
            message.encode(VERSION).unwrap();
        }
    }
    decode::<Hello>(bytes);
    decode::<HelloReply>(bytes);
    decode::<ToWorker>(bytes);
    decode::<ToGateway>(bytes);
}

fn encoded() -> Vec<Vec<u8>> {
    fn encode<M: Message>(message: &M) -> Vec<u8> {
        message.encode(VERSION).unwrap().as_bytes().to_vec()
    }
    let mut all = vec![encode(&samples::hello())];
    all.extend(samples::replies().iter().map(encode));
    all.extend(samples::orders().iter().map(encode));
    all.extend(samples::news().iter().map(encode));
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_frames_never_panic(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let all = encoded();
        let mut bytes = which.get(&all).clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            let payload = cut.index(bytes.len() - 16);
            bytes.truncate(16 + payload);
            bytes[8..12].copy_from_slice(&u32::try_from(payload).unwrap().to_le_bytes());
        }
        decode_as_all(&bytes);
    }

    #[test]
    fn random_payloads_never_panic(
        kind in 0u16..48,
        payload in prop::collection::vec(any::<u8>(), 0..256),
    ) {
        let length = u32::try_from(payload.len()).unwrap();
        let mut bytes = wire::Header { version: VERSION, kind, length }.to_bytes().to_vec();
        bytes.extend(payload);
        decode_as_all(&bytes);
    }
}
