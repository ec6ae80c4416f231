//! The bounds of everything that travels. A message beyond one of them is neither sent nor accepted.

/// Bytes of a frame's payload. The header is not counted.
pub const MAX_PAYLOAD_BYTES: u32 = 4 * 1024 * 1024;

/// Bytes of a hello's payload: small, because it is read before the peer is known to be a fitting one.
pub const MAX_HELLO_BYTES: u32 = 16 * 1024;

/// Tokens of one sequence, prompt and answer together.
pub const MAX_TOKENS: usize = 262_144;

/// Rooms that one frame may list: a digest, an answer to a digest, or a batch of tokens.
pub const MAX_ROOMS: usize = 32_768;

/// Alternatives that the log-probabilities of one token may list.
pub const MAX_TOP_LOGPROBS: usize = 20;

/// Bytes of an opaque KV address.
pub const MAX_ADDRESS_BYTES: usize = 256;

/// Bytes of a node's name: a label of a DNS name.
pub const MAX_NODE_BYTES: usize = 63;

/// Bytes of a model's or numerics' name.
pub const MAX_NAME_BYTES: usize = 256;

/// Bytes of the name of a KV transport.
pub const MAX_TRANSPORT_BYTES: usize = 32;

/// Bytes of a reason given to a person.
pub const MAX_REASON_BYTES: usize = 512;

/// Bytes of the words about one attempt that fails: a sentence, for it is kept with the attempt's room.
pub const MAX_WHY_BYTES: usize = 200;

/// Bytes of the address of a listener: the longest that there is has fewer.
pub const MAX_LISTENER_BYTES: usize = 64;

/// Milliseconds that a deadline may be away: a week.
pub const MAX_DEADLINE_MS: u64 = 7 * 24 * 3600 * 1000;

/// Milliseconds that a lease may be long: an hour.
pub const MAX_LEASE_MS: u32 = 3600 * 1000;
