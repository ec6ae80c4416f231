//! What can be wrong with a frame.

use crate::kind::Kind;

/// A value outside the bounds of [`limits`](crate::limits).
#[derive(Clone, Eq, PartialEq, Debug, thiserror::Error)]
pub enum Invalid {
    /// A list or a text that is too long.
    #[error("{field} has {len} entries or bytes, the limit is {limit}")]
    TooLong {
        /// Which.
        field: &'static str,
        /// Its length.
        len: usize,
        /// The longest allowed.
        limit: usize,
    },
    /// A list that must not be empty.
    #[error("{field} is empty")]
    Empty {
        /// Which.
        field: &'static str,
    },
    /// A text with characters that it must not have.
    #[error("{field} is {text:?}, it must be {want}")]
    Text {
        /// Which.
        field: &'static str,
        /// What it is.
        text: String,
        /// What is allowed.
        want: &'static str,
    },
    /// A number that is none, or outside its range.
    #[error("{field} is {value}, it must be {want}")]
    OutOfRange {
        /// Which.
        field: &'static str,
        /// What it is.
        value: String,
        /// What is allowed.
        want: &'static str,
    },
}

/// Why a message was not made into a frame.
#[derive(Clone, Eq, PartialEq, Debug, thiserror::Error)]
pub enum EncodeError {
    /// The content is out of bounds.
    #[error("{kind}: {invalid}")]
    Invalid {
        /// Of what message.
        kind: Kind,
        /// What is wrong.
        invalid: Invalid,
    },
    /// Within all bounds, and yet too long as a whole.
    #[error("{kind}: {bytes} bytes, the limit is {limit}")]
    TooLarge {
        /// Of what message.
        kind: Kind,
        /// Payload bytes it would have.
        bytes: usize,
        /// Payload bytes allowed.
        limit: u32,
    },
    /// The version has no such message: its peer is older than it.
    #[error("{kind}: there is none before version {since}, and version {version} was agreed")]
    TooNew {
        /// Of what message.
        kind: Kind,
        /// The first version that has it.
        since: u16,
        /// The version of the frame.
        version: u16,
    },
    /// The archive could not be written.
    #[error("{kind}: {why}")]
    Archive {
        /// Of what message.
        kind: Kind,
        /// As the serializer says.
        why: String,
    },
}

/// Why these bytes are not a header. What follows them cannot be told apart any more: the stream is of no use.
#[derive(Clone, Eq, PartialEq, Debug, thiserror::Error)]
pub enum HeaderError {
    /// Not a frame of ours.
    #[error("a frame begins with {want:08x}, not {got:08x}")]
    Magic {
        /// The first four bytes.
        got: u32,
        /// What they should be.
        want: u32,
    },
    /// More bytes announced than a frame may have.
    #[error("a payload of {bytes} bytes is announced, the limit is {limit}")]
    TooLarge {
        /// As announced.
        bytes: u32,
        /// The limit.
        limit: u32,
    },
    /// The last four bytes, kept for later use, are not zero.
    #[error("the reserved bytes of the header are {got:08x}, they must be zero")]
    Reserved {
        /// What they are.
        got: u32,
    },
}

/// Why a frame was not made into a message. The stream is still in step: the frame can be dropped and the next one read.
#[derive(Clone, Eq, PartialEq, Debug, thiserror::Error)]
pub enum DecodeError {
    /// The header is none. This one ends the stream.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// A version that was not agreed.
    #[error("version {got}, agreed was {want}")]
    Version {
        /// The frame's.
        got: u16,
        /// The link's.
        want: u16,
    },
    /// No message has this number.
    #[error("no message has the kind {0}")]
    UnknownKind(u16),
    /// A message that is not sent in this direction, or not now.
    #[error("{0} is not expected here")]
    Unexpected(Kind),
    /// The payload is not as long as announced.
    #[error("{got} bytes of payload, announced were {announced}")]
    Length {
        /// As announced.
        announced: u32,
        /// What there is.
        got: usize,
    },
    /// The payload is not an archive of such a message.
    #[error("{kind}: not an archive of this message: {why}")]
    Archive {
        /// As the header says.
        kind: Kind,
        /// As the checker says.
        why: String,
    },
    /// The payload is an archive of another message than the header says.
    #[error("the header says {header}, the payload is {payload}")]
    KindMismatch {
        /// As the header says.
        header: Kind,
        /// What was in it.
        payload: Kind,
    },
    /// The content is out of bounds.
    #[error("{kind}: {invalid}")]
    Invalid {
        /// Of what message.
        kind: Kind,
        /// What is wrong.
        invalid: Invalid,
    },
}
