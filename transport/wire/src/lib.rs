//! The messages between nodes: bytes to types and back, and nothing else.
//!
//! A message travels as one *frame*: a fixed [`Header`] and an rkyv archive. [`Message::encode`] makes a frame and
//! [`Message::decode`] reads one; whoever owns the stream reads the header first, and so knows how much follows before
//! it takes a byte of it. Decoding proves the structure (bytecheck) and then the content ([`limits`]); a value that
//! comes out is within every bound listed there, whoever sent it. Encoding holds the sender to the same bounds.
//!
//! These types are for the wire alone. The domain types they mirror live with those who decide; the conversion is
//! explicit, on their side.

mod check;
mod error;
mod frame;
mod hello;
mod kind;
pub mod limits;
mod message;
mod news;
mod orders;
mod token;
mod work;

pub use error::{DecodeError, EncodeError, HeaderError, Invalid};
pub use frame::{EncodedFrame, Header, Payload};
pub use hello::{Hello, HelloAck, HelloRefused, HelloReply, Role, agree_version, check_node_name};
pub use kind::Kind;
pub use message::Message;
pub use news::{AttemptError, Held, Refusal, StayPhase, ToGateway, WaitedIn, WorkerStats};
pub use orders::{Order, ToWorker};
pub use token::{Finish, Logprobs, RoomTokens, TokenOut};
pub use work::{Kept, RoomKey, Sampling, Ticket, TraceContext, Work};

/// The version of the messages that this build speaks best.
pub const VERSION: u16 = 4;

/// The oldest version that this build still speaks.
pub const MIN_VERSION: u16 = 2;

/// The version in the header of the three hello messages, which are exchanged before a version is agreed. Their layout
/// never changes.
pub const HELLO_VERSION: u16 = 1;
