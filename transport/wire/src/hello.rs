//! The first frames of a link: who is there, and whether the two fit.

use rkyv::{Archive, Deserialize, Serialize};

use crate::check::{Check, at_most, name, number, some_at_most, text};
use crate::error::Invalid;
use crate::kind::Kind;
use crate::limits::{MAX_ADDRESS_BYTES, MAX_LEASE_MS, MAX_NAME_BYTES, MAX_REASON_BYTES, MAX_TOKENS};

/// What a node does.
#[derive(Archive, Serialize, Deserialize, Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum Role {
    /// Owns requests.
    Gateway,
    /// Computes prompts.
    Prefill,
    /// Generates answers.
    Decode,
    /// Both.
    Mixed,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::Gateway, Self::Prefill, Self::Decode, Self::Mixed];

    /// The name in lower case: in certificates, labels and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Prefill => "prefill",
            Self::Decode => "decode",
            Self::Mixed => "mixed",
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A worker's first frame on a link that it dialled.
#[derive(Archive, Serialize, Deserialize, Clone, Eq, PartialEq, Debug)]
pub struct Hello {
    /// The oldest version of the messages that the worker speaks.
    pub min_version: u16,
    /// The newest one.
    pub max_version: u16,
    /// The worker's name, of which there is one link a gateway. Its certificate must say the same.
    pub node: String,
    /// The worker's incarnation: new at every start of its process, and greater than those before it.
    pub epoch: u64,
    /// What it does. Its certificate must say the same.
    pub role: Role,
    /// The model it serves.
    pub model: String,
    /// Names the layout and meaning of its KV blocks. Only equal ones can exchange blocks.
    pub layout_hash: u64,
    /// Tokens in a block.
    pub block_tokens: u32,
    /// Blocks in its pool.
    pub blocks: u32,
    /// Sequences that it decodes at a time.
    pub slots: u32,
    /// Positions that a sequence may have.
    pub context_tokens: u32,
    /// Where its KV can be read; opaque here.
    pub kv_address: Vec<u8>,
    /// Names the arithmetic: only equal ones continue each other's answers token for token.
    pub numerics: String,
    /// Whether the build has fault switches. Shown, and never needed for anything.
    pub faults: bool,
}

/// The gateway takes the worker.
#[derive(Archive, Serialize, Deserialize, Clone, Eq, PartialEq, Debug)]
pub struct HelloAck {
    /// The version of everything that follows.
    pub version: u16,
    /// The gateway's name. Its certificate must say the same.
    pub node: String,
    /// The gateway's incarnation: new at every start of its process.
    pub epoch: u64,
    /// Time between its heartbeats, in milliseconds.
    pub heartbeat_ms: u32,
    /// Silence that ends the link at both ends, in milliseconds.
    pub lease_ms: u32,
}

/// The gateway does not take the worker, and closes.
#[derive(Archive, Serialize, Deserialize, Clone, Eq, PartialEq, Debug)]
pub struct HelloRefused {
    /// Why, for people.
    pub reason: String,
}

/// The gateway's answer to a hello.
#[derive(Archive, Serialize, Deserialize, Clone, Eq, PartialEq, Debug)]
pub enum HelloReply {
    /// The link is up.
    Accepted(HelloAck),
    /// It is not.
    Refused(HelloRefused),
}

/// The newest version that both speak; none if there is none.
#[must_use]
pub fn agree_version(ours: (u16, u16), theirs: (u16, u16)) -> Option<u16> {
    let (min, max) = (ours.0.max(theirs.0), ours.1.min(theirs.1));
    (min <= max).then_some(max)
}

/// Whether a node may be called so.
///
/// # Errors
/// Why not.
pub fn check_node_name(node: &str) -> Result<(), Invalid> {
    name("the node's name", node)
}

impl Hello {
    pub(crate) const KINDS: &[Kind] = &[Kind::Hello];

    #[allow(clippy::unused_self, reason = "all messages have this function")]
    pub(crate) fn kind_of(&self) -> Kind {
        Kind::Hello
    }
}

impl HelloReply {
    pub(crate) const KINDS: &[Kind] = &[Kind::HelloAck, Kind::HelloRefused];

    pub(crate) fn kind_of(&self) -> Kind {
        match self {
            Self::Accepted(_) => Kind::HelloAck,
            Self::Refused(_) => Kind::HelloRefused,
        }
    }
}

impl Check for Hello {
    fn check(&self) -> Result<(), Invalid> {
        let (min, max) = (self.min_version, self.max_version);
        number("hello.min_version", min, min <= max, "at most max_version")?;
        name("hello.node", &self.node)?;
        some_at_most("hello.model", self.model.len(), MAX_NAME_BYTES)?;
        text("hello.model", &self.model, MAX_NAME_BYTES)?;
        text("hello.numerics", &self.numerics, MAX_NAME_BYTES)?;
        at_most("hello.kv_address", self.kv_address.len(), MAX_ADDRESS_BYTES)?;
        number(
            "hello.block_tokens",
            self.block_tokens,
            self.block_tokens > 0,
            "at least 1",
        )?;
        number("hello.blocks", self.blocks, self.blocks > 0, "at least 1")?;
        let context = self.context_tokens;
        let fits = context > 0 && context as usize <= MAX_TOKENS;
        number("hello.context_tokens", context, fits, "1 to 262144")
    }
}

impl Check for HelloReply {
    fn check(&self) -> Result<(), Invalid> {
        match self {
            Self::Accepted(ack) => {
                name("hello_ack.node", &ack.node)?;
                let (beat, lease) = (ack.heartbeat_ms, ack.lease_ms);
                number(
                    "hello_ack.heartbeat_ms",
                    beat,
                    beat > 0 && beat < lease,
                    "more than 0, less than lease_ms",
                )?;
                number(
                    "hello_ack.lease_ms",
                    lease,
                    lease <= MAX_LEASE_MS,
                    "at most an hour",
                )
            }
            Self::Refused(refused) => text("hello_refused.reason", &refused.reason, MAX_REASON_BYTES),
        }
    }
}
