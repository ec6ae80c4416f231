//! Encoding and decoding, the same for every message.

use rkyv::Archive;
use rkyv::api::high::{HighDeserializer, HighSerializer, HighValidator};
use rkyv::bytecheck::CheckBytes;
use rkyv::rancor::Error;
use rkyv::ser::allocator::ArenaHandle;
use rkyv::util::AlignedVec;

use crate::check::Check;
use crate::error::{DecodeError, EncodeError};
use crate::frame::{EncodedFrame, Header};
use crate::hello::{Hello, HelloReply};
use crate::kind::Kind;
use crate::limits::{MAX_HELLO_BYTES, MAX_PAYLOAD_BYTES};
use crate::news::ToGateway;
use crate::orders::ToWorker;

/// Something that travels as one frame. Implemented by the four enums and structs of this crate, and by nothing else.
pub trait Message: Sized + Send + std::fmt::Debug + sealed::Sealed + 'static {
    /// Bytes that its payload may have.
    const MAX_BYTES: u32;

    /// Which message it is.
    fn kind(&self) -> Kind;

    /// Makes it into a frame of this version.
    ///
    /// # Errors
    /// If its content is beyond a limit. It must then not be sent in another way either: the peer would drop it.
    fn encode(&self, version: u16) -> Result<EncodedFrame, EncodeError>;

    /// Makes the payload of a frame into a message. The payload need not be aligned; if it is not, it is copied.
    ///
    /// # Errors
    /// If it is not such a message of this version, or its content is beyond a limit.
    fn decode(version: u16, header: Header, payload: &[u8]) -> Result<Self, DecodeError>;

    /// Makes a whole frame into a message.
    ///
    /// # Errors
    /// As [`Message::decode`], and if there is more or less than one frame.
    fn decode_frame(version: u16, frame: &[u8]) -> Result<Self, DecodeError> {
        let Some((header, payload)) = frame.split_first_chunk() else {
            return Err(DecodeError::Length {
                announced: 0,
                got: frame.len(),
            });
        };
        Self::decode(version, Header::parse(header)?, payload)
    }
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! message {
    ($name:ty, $max:expr) => {
        impl sealed::Sealed for $name {}
        impl Message for $name {
            const MAX_BYTES: u32 = $max;

            fn kind(&self) -> Kind {
                self.kind_of()
            }

            fn encode(&self, version: u16) -> Result<EncodedFrame, EncodeError> {
                encode(self, version)
            }

            fn decode(version: u16, header: Header, payload: &[u8]) -> Result<Self, DecodeError> {
                let kind = expect(version, header, payload, Self::MAX_BYTES)?;
                if !Self::KINDS.contains(&kind) {
                    return Err(DecodeError::Unexpected(kind));
                }
                unarchive(kind, payload)
            }
        }
    };
}

message!(Hello, MAX_HELLO_BYTES);
message!(HelloReply, MAX_HELLO_BYTES);
message!(ToWorker, MAX_PAYLOAD_BYTES);
message!(ToGateway, MAX_PAYLOAD_BYTES);

fn encode<M>(message: &M, version: u16) -> Result<EncodedFrame, EncodeError>
where
    M: Message + Check + for<'a> rkyv::Serialize<HighSerializer<AlignedVec, ArenaHandle<'a>, Error>>,
{
    let kind = message.kind();
    let since = kind.since();
    if version < since {
        return Err(EncodeError::TooNew { kind, since, version });
    }
    message
        .check()
        .map_err(|invalid| EncodeError::Invalid { kind, invalid })?;
    let mut room = AlignedVec::with_capacity(256);
    room.extend_from_slice(&[0; Header::BYTES]);
    let mut bytes =
        rkyv::api::high::to_bytes_in(message, room).map_err(|why: Error| EncodeError::Archive {
            kind,
            why: why.to_string(),
        })?;
    let payload = bytes.len() - Header::BYTES;
    let length = u32::try_from(payload)
        .ok()
        .filter(|length| *length <= M::MAX_BYTES)
        .ok_or(EncodeError::TooLarge {
            kind,
            bytes: payload,
            limit: M::MAX_BYTES,
        })?;
    let header = Header {
        version,
        kind: kind.number(),
        length,
    };
    bytes[..Header::BYTES].copy_from_slice(&header.to_bytes());
    Ok(EncodedFrame { kind, bytes })
}

/// Everything that the header and the length of the payload can tell.
fn expect(version: u16, header: Header, payload: &[u8], max_bytes: u32) -> Result<Kind, DecodeError> {
    if header.version != version {
        return Err(DecodeError::Version {
            got: header.version,
            want: version,
        });
    }
    let kind = Kind::from_number(header.kind)
        .filter(|kind| kind.since() <= version)
        .ok_or(DecodeError::UnknownKind(header.kind))?;
    if header.length > max_bytes {
        let limit = max_bytes;
        return Err(crate::HeaderError::TooLarge {
            bytes: header.length,
            limit,
        }
        .into());
    }
    if header.length as usize != payload.len() {
        return Err(DecodeError::Length {
            announced: header.length,
            got: payload.len(),
        });
    }
    Ok(kind)
}

fn unarchive<M>(kind: Kind, payload: &[u8]) -> Result<M, DecodeError>
where
    M: Message + Check + Archive,
    M::Archived: for<'a> CheckBytes<HighValidator<'a, Error>> + rkyv::Deserialize<M, HighDeserializer<Error>>,
{
    let aligned = payload.as_ptr().align_offset(AlignedVec::<16>::ALIGNMENT) == 0;
    let message: Result<M, Error> = if aligned {
        rkyv::from_bytes(payload)
    } else {
        let mut copy = AlignedVec::<16>::with_capacity(payload.len());
        copy.extend_from_slice(payload);
        rkyv::from_bytes(&copy)
    };
    let message = message.map_err(|why| DecodeError::Archive {
        kind,
        why: why.to_string(),
    })?;
    if message.kind() != kind {
        return Err(DecodeError::KindMismatch {
            header: kind,
            payload: message.kind(),
        });
    }
    message
        .check()
        .map_err(|invalid| DecodeError::Invalid { kind, invalid })?;
    Ok(message)
}
