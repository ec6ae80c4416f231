//! Names of traces and spans. A span's name is computed from what it is about, so that every node knows the names of the others' spans
//! without being told: only the trace context travels.

use std::fmt;

use room::{Generation, NodeId, RoomId};
use xxhash_rust::xxh3::Xxh3;

/// Names a trace. Never 0.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct TraceId(u128);

impl TraceId {
    /// The id with these bits; 0, which names no trace, becomes 1.
    #[must_use]
    pub fn new(bits: u128) -> Self {
        Self(bits.max(1))
    }

    /// That of a request which came with none: of its first room's name, which nobody else has.
    #[must_use]
    pub fn of_room(room: RoomId) -> Self {
        let mut hash = Xxh3::with_seed(SEED);
        hash.update(&room.gateway.0.to_le_bytes());
        hash.update(&room.seq.to_le_bytes());
        Self::new(hash.digest128())
    }

    /// Its bits.
    #[must_use]
    pub fn bits(self) -> u128 {
        self.0
    }

    /// The id as people see and type it: 32 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        is_hex(text, 32)
            .then(|| u128::from_str_radix(text, 16).ok())
            .flatten()
            .filter(|bits| *bits != 0)
            .map(Self)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Names a span within its trace. Never 0.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct SpanId(u64);

impl SpanId {
    /// The id with these bits; 0, which names no span, becomes 1.
    #[must_use]
    pub fn new(bits: u64) -> Self {
        Self(bits.max(1))
    }

    /// Its bits.
    #[must_use]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The span of `kind` that is about this. `generation` is 0 for what is about the room as a whole; `worker` is who says it: for spans of
    /// the owner, its gateway.
    #[must_use]
    pub fn of(trace: TraceId, room: RoomId, generation: Generation, worker: NodeId, kind: SpanKind) -> Self {
        let mut hash = Xxh3::with_seed(SEED);
        hash.update(&trace.0.to_le_bytes());
        hash.update(&room.gateway.0.to_le_bytes());
        hash.update(&room.seq.to_le_bytes());
        hash.update(&generation.0.to_le_bytes());
        hash.update(&worker.0.to_le_bytes());
        hash.update(kind.name().as_bytes());
        Self::new(hash.digest())
    }

    /// The owner's span of `kind` about one attempt.
    #[must_use]
    pub fn of_attempt(trace: TraceId, room: RoomId, generation: Generation, kind: SpanKind) -> Self {
        Self::of(trace, room, generation, room.gateway, kind)
    }

    /// The owner's span of `kind` about a room as a whole. That of a request is its first room's.
    #[must_use]
    pub fn of_room(trace: TraceId, room: RoomId, kind: SpanKind) -> Self {
        Self::of_attempt(trace, room, Generation(0), kind)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Tells span ids from other numbers that are made of the same things.
const SEED: u64 = 0x696e_6e6b_6565_7065;

/// What a span is about. Closed: a name is part of its span's id.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum SpanKind {
    /// The whole request. Its parent is the client's span.
    Request,
    /// One of several answers of a request.
    Room,
    /// One attempt at a room.
    Attempt,
    /// What the door does before there is a room.
    Prepare,
    /// Of that: the prompt is made of the conversation.
    Render,
    /// Of that: the prompt becomes tokens.
    Tokenise,
    /// An attempt waits for credit.
    Queue,
    /// It waits for decode's grant.
    Reserve,
    /// Its prompt is computed.
    Prefill,
    /// Its KV is moved.
    Pull,
    /// Its source is told to let go, and does.
    Release,
    /// Its tokens stream.
    Decode,
    /// The answer is given; leases are being proven returned.
    Drain,
    /// At the worker: the prompt is computed.
    ComputePrompt,
    /// At the worker: the KV is on offer.
    Publish,
    /// At the worker: the KV is read.
    Read,
    /// At the worker: tokens are generated.
    Generate,
    /// At the worker: the lease is closed, and somebody may still touch its blocks.
    Closing,
}

impl SpanKind {
    /// Every kind.
    pub const ALL: [Self; 18] = [
        Self::Request,
        Self::Room,
        Self::Attempt,
        Self::Prepare,
        Self::Render,
        Self::Tokenise,
        Self::Queue,
        Self::Reserve,
        Self::Prefill,
        Self::Pull,
        Self::Release,
        Self::Decode,
        Self::Drain,
        Self::ComputePrompt,
        Self::Publish,
        Self::Read,
        Self::Generate,
        Self::Closing,
    ];

    /// The span's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Room => "room",
            Self::Attempt => "attempt",
            Self::Prepare => "prepare",
            Self::Render => "render",
            Self::Tokenise => "tokenise",
            Self::Queue => "queue",
            Self::Reserve => "reserve",
            Self::Prefill => "prefill",
            Self::Pull => "pull",
            Self::Release => "release",
            Self::Decode => "decode",
            Self::Drain => "drain",
            Self::ComputePrompt => "compute_prompt",
            Self::Publish => "publish",
            Self::Read => "read",
            Self::Generate => "generate",
            Self::Closing => "closing",
        }
    }
}

/// The trace that a request belongs to: the client's, or one of its own.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct Trace {
    /// Which.
    pub id: TraceId,
    /// The span that caused the request (at a worker: the owner's request span); none if the trace begins here.
    pub parent: Option<SpanId>,
    /// W3C's flags.
    pub flags: u8,
}

impl Trace {
    /// W3C's flag for "the caller records this trace".
    pub const SAMPLED: u8 = 1;

    /// A trace that begins here.
    #[must_use]
    pub fn new(id: TraceId) -> Self {
        Self {
            id,
            parent: None,
            flags: 0,
        }
    }

    /// Whether whoever called us, or we, decided at the beginning that it is recorded.
    #[must_use]
    pub fn is_sampled(self) -> bool {
        self.flags & Self::SAMPLED != 0
    }

    /// The context in a `traceparent` header; none if it is not a valid one.
    #[must_use]
    pub fn parse(header: &str) -> Option<Self> {
        let mut parts = header.trim().split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        // Later versions may have more parts behind these; version ff is forbidden.
        let is_known = is_hex(version, 2) && version != "ff" && (version != "00" || parts.next().is_none());
        if !is_known || !is_hex(span, 16) || !is_hex(flags, 2) {
            return None;
        }
        let span = u64::from_str_radix(span, 16).ok().filter(|bits| *bits != 0)?;
        Some(Self {
            id: TraceId::parse(trace)?,
            parent: Some(SpanId(span)),
            flags: u8::from_str_radix(flags, 16).ok()?,
        })
    }

    /// The `traceparent` header that says: this span, of this trace.
    #[must_use]
    pub fn header(self, span: SpanId) -> String {
        format!("00-{}-{span}-{:02x}", self.id, self.flags & Self::SAMPLED)
    }
}

fn is_hex(text: &str, len: usize) -> bool {
    text.len() == len && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
