//! What the cluster says of stays, attempts and outcomes as they happen: the gateways are only looked at now and then, and what is
//! wrong for less than that would not be seen.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use room::{Attempt, Generation, NodeId, RoomId};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use crate::trace::Trace;

/// Something that was said.
#[derive(Clone, Eq, PartialEq, Debug)]
pub enum Said {
    /// A stay began at a worker.
    Opened(String, Attempt),
    /// A stay has lost its lease: it is gone, or waits for its proofs.
    Closed(String, Attempt),
    /// A worker's incarnation is over, and with it all that was there.
    Over(String),
    /// The attempts at a room up to this generation are over for its owner.
    Past(RoomId, Generation),
    /// The next attempt at a room begins.
    Next(RoomId, Generation),
    /// An attempt failed, in words.
    Failed(Attempt, String),
    /// A client was told how a room ended.
    Outcome(RoomId),
    /// A worker is fenced for a lease of a room that it did not return.
    Fenced(RoomId),
}

impl Said {
    /// Every name.
    pub const NAMES: [&str; 8] = [
        "stay opened",
        "stay closed",
        "worker over",
        "attempts over",
        "next attempt",
        "attempt failed",
        "outcome told",
        "worker fenced",
    ];

    /// The name it is counted by.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let at = match self {
            Self::Opened(..) => 0,
            Self::Closed(..) => 1,
            Self::Over(_) => 2,
            Self::Past(..) => 3,
            Self::Next(..) => 4,
            Self::Failed(..) => 5,
            Self::Outcome(_) => 6,
            Self::Fenced(_) => 7,
        };
        Self::NAMES[at]
    }
}

/// All that was said, in order. Cloning gives the same one.
#[derive(Clone)]
pub(crate) struct Witness {
    trace: Trace,
    said: Arc<Mutex<Vec<(Duration, Said)>>>,
}

impl Witness {
    /// One that has heard nothing yet; times are the trace's.
    pub(crate) fn new(trace: &Trace) -> Self {
        Self {
            trace: trace.clone(),
            said: Arc::default(),
        }
    }

    /// All so far.
    pub(crate) fn all(&self) -> Vec<(Duration, Said)> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<S: Subscriber> Layer<S> for Witness {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let target = event.metadata().target();
        if !target.starts_with("runtime") && !target.starts_with("sim::machine") {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        if let Some(said) = fields.said() {
            let mut all = self.said.lock().unwrap_or_else(PoisonError::into_inner);
            all.push((self.trace.now(), said));
        }
    }
}

/// What an event may carry of use.
#[derive(Default)]
struct Fields {
    message: String,
    who: String,
    room: String,
    generation: u32,
    from: String,
    to: String,
    error: String,
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "generation" {
            self.generation = u32::try_from(value).unwrap_or(u32::MAX);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if matches!(field.name(), "worker" | "machine") {
            value.clone_into(&mut self.who);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let part = match field.name() {
            "message" => &mut self.message,
            "room" => &mut self.room,
            "from" => &mut self.from,
            "to" => &mut self.to,
            "error" => &mut self.error,
            _ => return,
        };
        *part = format!("{value:?}");
    }
}

impl Fields {
    fn said(self) -> Option<Said> {
        let generation = Generation(self.generation);
        match self.message.as_str() {
            "stay" => {
                let attempt = attempt(&self.room)?;
                match (self.from.as_str(), self.to.as_str()) {
                    ("None", _) => Some(Said::Opened(self.who, attempt)),
                    (_, "None" | "Some(Closing)") => Some(Said::Closed(self.who, attempt)),
                    _ => None,
                }
            }
            "the worker ended; a new one is started" | "the worker ends again and again" | "is off" => {
                Some(Said::Over(self.who))
            }
            "phase" => match self.to.as_str() {
                "queued" => Some(Said::Next(room(&self.room)?, generation)),
                "draining" => Some(Said::Past(room(&self.room)?, generation)),
                _ => None,
            },
            "the room's owner died; its supervisor drains the room" => {
                Some(Said::Past(room(&self.room)?, Generation(u32::MAX)))
            }
            "the attempt failed" => {
                let room = room(&self.room)?;
                Some(Said::Failed(Attempt { room, generation }, self.error))
            }
            "ended" => Some(Said::Outcome(room(&self.room)?)),
            "the worker is fenced: it did not return a lease" => Some(Said::Fenced(room(&self.room)?)),
            _ => None,
        }
    }
}

/// A room, out of how it is shown.
fn room(shown: &str) -> Option<RoomId> {
    let (gateway, seq) = shown.split_once('-')?;
    Some(RoomId {
        gateway: NodeId(u64::from_str_radix(gateway, 16).ok()?),
        seq: seq.parse().ok()?,
    })
}

/// An attempt, out of how it is shown.
fn attempt(shown: &str) -> Option<Attempt> {
    let (of, generation) = shown.split_once('#')?;
    Some(Attempt {
        room: room(of)?,
        generation: Generation(generation.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use room::{Attempt, Generation, NodeId, RoomId};

    use super::{attempt, room};

    #[test]
    fn names_are_read_as_they_are_shown() {
        let of = RoomId {
            gateway: NodeId(0xab),
            seq: 12,
        };
        let generation = Generation(3);
        let third = Attempt { room: of, generation };
        assert_eq!(room(&of.to_string()), Some(of));
        assert_eq!(attempt(&third.to_string()), Some(third));
        assert_eq!(attempt("12"), None);
    }
}
