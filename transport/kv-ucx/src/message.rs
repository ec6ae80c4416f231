//! The messages between reader and source: fixed little-endian headers, each with the protocol's version first.
//!
//! | id | name | direction | header after the version | payload |
//! |---|---|---|---|---|
//! | 1 | READ | to source | read, key, capability, from, block bytes, runs | run lengths, u32 each |
//! | 2 | DATA | to reader | read, key, at, count, checksum | `count` blocks |
//! | 3 | REFUSE | to reader | read, reason | |
//! | 4 | CANCEL | to source | read | |

use kv::{MAX_BLOCKS, ReadId, Refusal, TransferKey};

/// Version of the protocol; a message of another is malformed.
const VERSION: u32 = 1;
/// Longest header accepted, in bytes.
pub(crate) const MAX_HEADER_BYTES: usize = 128;

pub(crate) const ID_READ: u32 = 1;
pub(crate) const ID_DATA: u32 = 2;
pub(crate) const ID_REFUSE: u32 = 3;
pub(crate) const ID_CANCEL: u32 = 4;

/// A reader asks for blocks.
#[derive(Clone, Eq, PartialEq, Debug)]
pub(crate) struct ReadMessage {
    pub(crate) id: ReadId,
    pub(crate) key: TransferKey,
    pub(crate) capability: u128,
    /// Position in the offer of the first block.
    pub(crate) from: u32,
    /// Size of the reader's blocks.
    pub(crate) block_bytes: u64,
    /// Lengths, in blocks, of the pieces that are contiguous at the reader.
    pub(crate) runs: Vec<u32>,
}

/// A source sends one contiguous piece.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(crate) struct DataMessage {
    pub(crate) id: ReadId,
    pub(crate) key: TransferKey,
    /// Position in the read of the piece's first block.
    pub(crate) at: u32,
    /// Blocks in it.
    pub(crate) count: u32,
    /// Of the whole piece, under the position in the offer of its first block.
    pub(crate) checksum: u64,
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn key(&mut self) -> Option<TransferKey> {
        Some(TransferKey {
            gateway: self.u64()?,
            seq: self.u64()?,
            generation: self.u32()?,
        })
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Checks the version and takes the read's id.
fn open(header: &[u8]) -> Option<(Cursor<'_>, ReadId)> {
    let mut cursor = Cursor(header);
    (cursor.u32()? == VERSION).then_some(())?;
    let id = ReadId(cursor.u64()?);
    Some((cursor, id))
}

fn start(id: ReadId) -> Vec<u8> {
    let mut out = Vec::with_capacity(MAX_HEADER_BYTES);
    out.extend(VERSION.to_le_bytes());
    out.extend(id.0.to_le_bytes());
    out
}

fn put_key(out: &mut Vec<u8>, key: TransferKey) {
    out.extend(key.gateway.to_le_bytes());
    out.extend(key.seq.to_le_bytes());
    out.extend(key.generation.to_le_bytes());
}

impl ReadMessage {
    /// Header and payload.
    pub(crate) fn encode(&self) -> (Vec<u8>, Vec<u8>) {
        let mut out = start(self.id);
        put_key(&mut out, self.key);
        out.extend(self.capability.to_le_bytes());
        out.extend(self.from.to_le_bytes());
        out.extend(self.block_bytes.to_le_bytes());
        let runs = u32::try_from(self.runs.len()).unwrap_or(u32::MAX);
        out.extend(runs.to_le_bytes());
        (out, self.runs.iter().flat_map(|run| run.to_le_bytes()).collect())
    }

    /// None for anything malformed: another version, wrong lengths, an empty run, too many blocks.
    pub(crate) fn decode(header: &[u8], payload: &[u8]) -> Option<Self> {
        let (mut cursor, id) = open(header)?;
        let key = cursor.key()?;
        let capability = u128::from_le_bytes(cursor.take()?);
        let (from, block_bytes, count) = (cursor.u32()?, cursor.u64()?, cursor.u32()? as usize);
        cursor.end()?;
        if count == 0 || count > MAX_BLOCKS || payload.len() != count * 4 {
            return None;
        }
        let mut rest = Cursor(payload);
        let mut runs = Vec::with_capacity(count);
        let mut blocks = 0usize;
        for _ in 0..count {
            let run = rest.u32()?;
            blocks = blocks.checked_add(run as usize)?;
            if run == 0 || blocks > MAX_BLOCKS {
                return None;
            }
            runs.push(run);
        }
        Some(Self {
            id,
            key,
            capability,
            from,
            block_bytes,
            runs,
        })
    }

    /// The read's id alone, to refuse what is otherwise malformed.
    pub(crate) fn peek_id(header: &[u8]) -> Option<ReadId> {
        open(header).map(|(_, id)| id)
    }

    /// Blocks asked for.
    pub(crate) fn blocks(&self) -> u32 {
        self.runs.iter().sum()
    }
}

impl DataMessage {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = start(self.id);
        put_key(&mut out, self.key);
        out.extend(self.at.to_le_bytes());
        out.extend(self.count.to_le_bytes());
        out.extend(self.checksum.to_le_bytes());
        out
    }

    pub(crate) fn decode(header: &[u8]) -> Option<Self> {
        let (mut cursor, id) = open(header)?;
        let key = cursor.key()?;
        let (at, count, checksum) = (cursor.u32()?, cursor.u32()?, cursor.u64()?);
        cursor.end()?;
        Some(Self {
            id,
            key,
            at,
            count,
            checksum,
        })
    }
}

const REASONS: [Refusal; 6] = [
    Refusal::NoSuchOffer,
    Refusal::WrongCapability,
    Refusal::OutOfRange,
    Refusal::Layout,
    Refusal::Busy,
    Refusal::Malformed,
];

/// Header of a REFUSE.
pub(crate) fn encode_refusal(id: ReadId, why: Refusal) -> Vec<u8> {
    let mut out = start(id);
    let code = REASONS
        .iter()
        .position(|&r| r == why)
        .unwrap_or(REASONS.len() - 1);
    out.extend(u32::try_from(code).unwrap_or(u32::MAX).to_le_bytes());
    out
}

/// The read and the reason; a reason this version does not know counts as not understood.
pub(crate) fn decode_refusal(header: &[u8]) -> Option<(ReadId, Refusal)> {
    let (mut cursor, id) = open(header)?;
    let code = cursor.u32()? as usize;
    cursor.end()?;
    Some((id, REASONS.get(code).copied().unwrap_or(Refusal::Malformed)))
}

/// Header of a CANCEL.
pub(crate) fn encode_cancel(id: ReadId) -> Vec<u8> {
    start(id)
}

/// The read.
pub(crate) fn decode_cancel(header: &[u8]) -> Option<ReadId> {
    let (cursor, id) = open(header)?;
    cursor.end()?;
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: TransferKey = TransferKey {
        gateway: 0x11,
        seq: 0x22,
        generation: 0x33,
    };

    fn read() -> ReadMessage {
        let (id, capability) = (ReadId(7), u128::MAX - 1);
        ReadMessage {
            id,
            key: KEY,
            capability,
            from: 3,
            block_bytes: 4096,
            runs: vec![1, 5, 2],
        }
    }

    #[test]
    fn messages_come_back_as_they_went() {
        let (header, payload) = read().encode();
        assert!(header.len() <= MAX_HEADER_BYTES);
        assert_eq!(ReadMessage::decode(&header, &payload), Some(read()));
        assert_eq!(read().blocks(), 8);
        let data = DataMessage {
            id: ReadId(7),
            key: KEY,
            at: 1,
            count: 5,
            checksum: 99,
        };
        assert_eq!(DataMessage::decode(&data.encode()), Some(data));
        for why in REASONS {
            assert_eq!(
                decode_refusal(&encode_refusal(ReadId(1), why)),
                Some((ReadId(1), why))
            );
        }
        assert_eq!(decode_cancel(&encode_cancel(ReadId(1))), Some(ReadId(1)));
    }

    #[test]
    fn the_layout_on_the_wire_is_fixed() {
        let data = DataMessage {
            id: ReadId(7),
            key: KEY,
            at: 1,
            count: 5,
            checksum: 99,
        };
        let want = [
            1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0x11, 0, 0, 0, 0, 0, 0, 0, 0x22, 0, 0, 0, 0, 0, 0, 0, 0x33,
            0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 99, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(data.encode(), want);
    }

    #[test]
    fn what_is_cut_or_grown_is_malformed() {
        let (header, payload) = read().encode();
        for len in 0..header.len() {
            assert_eq!(ReadMessage::decode(&header[..len], &payload), None);
        }
        for len in 0..payload.len() {
            assert_eq!(ReadMessage::decode(&header, &payload[..len]), None);
        }
        let grown = [header.clone(), vec![0]].concat();
        assert_eq!(ReadMessage::decode(&grown, &payload), None);
        let other_version = [&[9], &header[1..]].concat();
        assert_eq!(ReadMessage::decode(&other_version, &payload), None);
    }

    #[test]
    fn runs_are_bounded() {
        for runs in [
            vec![],
            vec![0],
            vec![u32::MAX, u32::MAX],
            vec![u32::try_from(MAX_BLOCKS).unwrap(), 1],
        ] {
            let (header, payload) = ReadMessage { runs, ..read() }.encode();
            assert_eq!(ReadMessage::decode(&header, &payload), None);
        }
    }
}
