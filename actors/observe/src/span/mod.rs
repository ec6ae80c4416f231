//! Histories as spans: what a trace shows of a request. Pure; an exporter carries them away.
//!
//! ```text
//!   the client's span
//!   └── request                     SERVER. From the door's first look until nothing is left of it
//!       ├── prepare                 before there is a room
//!       │   ├── render              the prompt is made of the conversation
//!       │   └── tokenise
//!       ├── room                    only where a request has several; holds what follows for each
//!       ├── attempt                 one for each generation; links to the one that it replaces
//!       │   ├── queue               waits for credit
//!       │   ├── reserve             waits for decode's grant
//!       │   ├── prefill             one event a chunk
//!       │   │   └── compute_prompt      at the worker
//!       │   ├── pull                bytes, descriptors, both ends, transport
//!       │   │   └── read                at the worker
//!       │   ├── decode              first token, pauses, stalls
//!       │   ├── release             one for each worker that was told to let go while the room went on
//!       │   ├── publish                 at the worker: the KV is on offer
//!       │   ├── generate                at the worker
//!       │   └── closing                 at the worker: who still touches its blocks
//!       └── drain                   the answer is given; leases are being proven returned
//! ```
//!
//! Phases follow each other without a gap, because a room is always in one. An attempt lasts until its leases are returned, and so may go on
//! beside the one that replaces it.
//!
//! **A worker's span is a child of what was there for certain when it began**, so that no parent is missing whatever fails in between: a
//! prompt is computed because the owner was in `prefill`, and KV is read because it was in `pull`. But KV is on offer, and tokens are
//! generated, before the owner hears of it, and perhaps it never does: these are children of the attempt, like what is left to close.
//!
//! Of a room with very many events some are left out (see [`Kept`](crate::Kept)); the request's span then says how many, and attempts in
//! between may be missing.

mod attributes;
mod request;
mod room;
mod stay;

use ::room::{NodeId, RoomId, Time};

use crate::event::Text;
use crate::ids::{SpanId, SpanKind, TraceId};

pub use request::of_request;
pub use stay::of_stay;

/// A span.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceSpan {
    /// Its trace.
    pub trace: TraceId,
    /// Its name within the trace.
    pub id: SpanId,
    /// Its parent; none if the trace begins with it.
    pub parent: Option<SpanId>,
    /// Whether the parent is somebody else's: the client's, or another node's.
    pub parent_is_remote: bool,
    /// What it is about.
    pub kind: SpanKind,
    /// When it began.
    pub start: Time,
    /// When it ended; never before it began.
    pub end: Time,
    /// What is known of it.
    pub attributes: Vec<Attribute>,
    /// What happened in it, in order.
    pub events: Vec<SpanEvent>,
    /// Spans that it has to do with, other than its parent.
    pub links: Vec<Link>,
    /// Whether it failed.
    pub status: Status,
}

/// A name and a value.
pub type Attribute = (&'static str, Value);

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// One of our own words.
    Word(&'static str),
    /// Text.
    Text(Text),
    /// A number.
    Int(i64),
    /// A number that need not be whole.
    Float(f64),
    /// A truth.
    Bool(bool),
    /// Several of our own words.
    Words(Vec<&'static str>),
    /// A node's incarnation, as it is printed.
    Node(NodeId),
    /// A room, as it is printed.
    Room(RoomId),
}

/// Something that happened within a span.
#[derive(Clone, PartialEq, Debug)]
pub struct SpanEvent {
    /// When.
    pub at: Time,
    /// What.
    pub name: &'static str,
    /// What is known of it.
    pub attributes: Vec<Attribute>,
}

/// Another span of the same trace.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Which.
    pub to: SpanId,
    /// In what way.
    pub attributes: Vec<Attribute>,
}

/// Whether what a span is about failed.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Status {
    /// It did not.
    #[default]
    Unset,
    /// It did, for this reason.
    Error(&'static str),
}

impl TraceSpan {
    fn new(trace: TraceId, id: SpanId, parent: Option<SpanId>, kind: SpanKind, start: Time) -> Self {
        Self {
            trace,
            id,
            parent,
            parent_is_remote: false,
            kind,
            start,
            end: start,
            attributes: Vec::new(),
            events: Vec::new(),
            links: Vec::new(),
            status: Status::Unset,
        }
    }

    /// The attribute of this name.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// What is said last holds.
    fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        let value = value.into();
        match self.attributes.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.attributes.push((name, value)),
        }
    }

    /// Something happened in it. A step is told of with the time at which it was decided, and what led to it may be told of a moment later.
    fn event(&mut self, at: Time, name: &'static str, attributes: Vec<Attribute>) {
        self.reach(at);
        self.events.push(SpanEvent { at, name, attributes });
    }

    /// It goes on until then at least.
    fn reach(&mut self, at: Time) {
        self.end = self.end.max(at);
    }
}

impl From<&'static str> for Value {
    fn from(word: &'static str) -> Self {
        Self::Word(word)
    }
}

impl From<&Text> for Value {
    fn from(text: &Text) -> Self {
        Self::Text(Text::clone(text))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Int(number.into())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<NodeId> for Value {
    fn from(node: NodeId) -> Self {
        Self::Node(node)
    }
}

impl From<RoomId> for Value {
    fn from(room: RoomId) -> Self {
        Self::Room(room)
    }
}
