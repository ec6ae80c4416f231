//! The messages between a reader of KV and its source.

use kv::MAX_BLOCKS;

// The crate has no such thing as a public parser, and needs none: this is its file.
#[allow(dead_code, unreachable_pub, reason = "written for its crate")]
#[path = "../../../../transport/kv-ucx/src/message.rs"]
mod message;

use message::{DataMessage, ReadMessage, decode_cancel, decode_refusal, encode_cancel, encode_refusal};

/// Bytes of a READ's header: what follows is its payload.
const READ_HEADER: usize = 64;

/// The bytes as each of the four messages.
///
/// # Panics
/// Where something is understood that would not be sent so, or runs beyond their bounds get through.
pub fn kv_message(data: &[u8]) {
    let (header, payload) = data.split_at(READ_HEADER.min(data.len()));
    let read = ReadMessage::decode(header, payload);
    if let Some(read) = &read {
        assert_eq!(read.encode(), (header.to_vec(), payload.to_vec()));
        assert_eq!(ReadMessage::peek_id(header), Some(read.id));
        assert!(!read.runs.contains(&0));
        let blocks: u64 = read.runs.iter().map(|run| u64::from(*run)).sum();
        assert!((1..=MAX_BLOCKS as u64).contains(&blocks));
        assert_eq!(blocks, u64::from(read.blocks()));
    }
    let data_message = DataMessage::decode(data);
    if let Some(message) = data_message {
        assert_eq!(message.encode(), data);
    }
    let refusal = decode_refusal(data);
    if let Some((id, why)) = refusal {
        let again = encode_refusal(id, why);
        assert_eq!(decode_refusal(&again), Some((id, why)));
        // The reason may be one of a later version.
        assert_eq!(again[..12], data[..12]);
    }
    let cancel = decode_cancel(data);
    if let Some(id) = cancel {
        assert_eq!(encode_cancel(id), data);
    }
    // Their ids on the wire tell them apart; so do their lengths.
    let understood = [
        read.is_some(),
        data_message.is_some(),
        refusal.is_some(),
        cancel.is_some(),
    ];
    assert!(understood.iter().filter(|is| **is).count() <= 1, "{understood:?}");
}
