//! A frame: sixteen bytes of header, then an archive.
//!
//! ```text
//! 0        4         6      8        12        16
//! │ "INNK" │ version │ kind │ length │ 0 0 0 0 │ payload: `length` bytes of rkyv archive
//! ```
//!
//! All numbers are little endian. The header is as long as the strictest alignment in an archive, so that a frame in
//! aligned memory has an aligned payload.

use rkyv::util::AlignedVec;

use crate::error::HeaderError;
use crate::kind::Kind;
use crate::limits::MAX_PAYLOAD_BYTES;

const MAGIC: u32 = u32::from_le_bytes(*b"INNK");

/// What precedes every payload.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct Header {
    /// The version of the messages.
    pub version: u16,
    /// The number of the message; see [`Kind::from_number`]. It may be one that this build does not know.
    pub kind: u16,
    /// Bytes of payload.
    pub length: u32,
}

impl Header {
    /// Its length in bytes.
    pub const BYTES: usize = 16;

    /// Reads a header.
    ///
    /// # Errors
    /// If it is none. What follows it on the stream is then of no use.
    pub fn parse(bytes: &[u8; Self::BYTES]) -> Result<Self, HeaderError> {
        let [m0, m1, m2, m3, v0, v1, k0, k1, l0, l1, l2, l3, r0, r1, r2, r3] = *bytes;
        let got = u32::from_le_bytes([m0, m1, m2, m3]);
        if got != MAGIC {
            return Err(HeaderError::Magic { got, want: MAGIC });
        }
        let reserved = u32::from_le_bytes([r0, r1, r2, r3]);
        if reserved != 0 {
            return Err(HeaderError::Reserved { got: reserved });
        }
        let length = u32::from_le_bytes([l0, l1, l2, l3]);
        if length > MAX_PAYLOAD_BYTES {
            return Err(HeaderError::TooLarge {
                bytes: length,
                limit: MAX_PAYLOAD_BYTES,
            });
        }
        Ok(Self {
            version: u16::from_le_bytes([v0, v1]),
            kind: u16::from_le_bytes([k0, k1]),
            length,
        })
    }

    /// Writes the header.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.version.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.kind.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }
}

/// A message made into bytes: header and payload.
#[derive(Clone)]
pub struct EncodedFrame {
    pub(crate) kind: Kind,
    pub(crate) bytes: AlignedVec,
}

impl EncodedFrame {
    /// Which message it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What goes onto the stream.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl std::fmt::Debug for EncodedFrame {
    /// Without the bytes: they are somebody's text.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EncodedFrame")
            .field("kind", &self.kind)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

/// Room for the payload of one frame, aligned as an archive needs it.
#[derive(Default)]
pub struct Payload(AlignedVec);

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Payload").field("bytes", &self.0.len()).finish()
    }
}

impl Payload {
    /// Makes room for `header.length` bytes, all zero, whatever was here before. Keeps its memory between frames, but
    /// not that of an unusually long one.
    pub fn prepare(&mut self, header: Header) -> &mut [u8] {
        const KEEP: usize = 64 * 1024;
        let length = header.length as usize;
        if self.0.capacity() > KEEP && length <= KEEP {
            self.0 = AlignedVec::new();
        }
        self.0.clear();
        self.0.resize(length, 0);
        self.0.as_mut_slice()
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(length: u32) -> Header {
        Header {
            version: 1,
            kind: 1,
            length,
        }
    }

    /// After a frame of `first` bytes and one of `then`: whether the memory of the first is still there.
    fn check(first: u32, then: u32, kept: bool) {
        let mut payload = Payload::default();
        payload.prepare(header(first)).fill(0xff);
        assert_eq!(payload.as_bytes(), vec![0xff; first as usize]);
        let bytes = payload.prepare(header(then));
        assert_eq!(
            bytes,
            vec![0; then as usize],
            "nothing of an earlier frame is left"
        );
        assert_eq!(payload.0.capacity() >= first as usize, kept, "{first}, {then}");
    }

    #[test]
    fn the_memory_of_a_payload_is_used_again_unless_it_is_much() {
        check(4_096, 16, true);
        check(16, 4_096, true);
        check(65_536, 16, true);
        check(65_537, 16, false);
        check(65_537, 65_536, false);
        check(131_072, 100_000, true);
    }
}
