//! What happens next: one queue for all, in order of time and then of arrival.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::flow::FlowId;

/// What happens to a read, at its reader or at its source.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(super) enum What {
    /// The request reaches the source.
    Ask,
    /// A piece announces itself at the reader.
    Header { at: u32 },
    /// A piece has landed at the reader.
    Land { at: u32 },
    /// The source hears that a piece's send has completed.
    Sent { at: u32 },
    /// The source's no reaches the reader.
    Refuse(kv::Refusal),
    /// The source hears that no more is wanted.
    Cancel,
    /// The source hears that the reader's end of the endpoint is gone.
    ReaderGone,
    /// The reader hears that the source's end of the endpoint is gone.
    SourceGone(&'static str),
    /// Stray bytes land at a block of the read after its endpoint was closed by force.
    Stray { index: u32 },
    /// The reader's forced close has ended.
    ReadClosed,
    /// The source's forced close has ended.
    AnswerClosed,
    /// The reader looks at the read's progress.
    ReadDeadline,
    /// The source looks at the answer's progress.
    AnswerDeadline,
}

/// At which end of a read something happens.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(super) enum End {
    Reader,
    Source,
}

impl What {
    /// Where it happens.
    pub(super) fn end(&self) -> End {
        match self {
            Self::Header { .. }
            | Self::Land { .. }
            | Self::Refuse(_)
            | Self::SourceGone(_)
            | Self::Stray { .. }
            | Self::ReadClosed
            | Self::ReadDeadline => End::Reader,
            Self::Ask
            | Self::Sent { .. }
            | Self::Cancel
            | Self::ReaderGone
            | Self::AnswerClosed
            | Self::AnswerDeadline => End::Source,
        }
    }

    /// Whether it comes from the other end.
    pub(super) fn crosses(&self) -> bool {
        !matches!(
            self,
            Self::Stray { .. }
                | Self::ReadClosed
                | Self::AnswerClosed
                | Self::ReadDeadline
                | Self::AnswerDeadline
        )
    }

    /// Whether it is a look at the clock.
    pub(super) fn is_deadline(&self) -> bool {
        matches!(self, Self::ReadDeadline | Self::AnswerDeadline)
    }

    /// A number for the fingerprint.
    pub(super) fn number(&self) -> u64 {
        match self {
            Self::Ask => 1,
            Self::Header { at } => 2 | u64::from(*at) << 8,
            Self::Land { at } => 3 | u64::from(*at) << 8,
            Self::Sent { at } => 4 | u64::from(*at) << 8,
            Self::Refuse(why) => 5 | (*why as u64) << 8,
            Self::Cancel => 6,
            Self::ReaderGone => 7,
            Self::SourceGone(_) => 8,
            Self::Stray { index } => 9 | u64::from(*index) << 8,
            Self::ReadClosed => 10,
            Self::AnswerClosed => 11,
            Self::ReadDeadline => 12,
            Self::AnswerDeadline => 13,
        }
    }
}

/// Something that happens to a read.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(super) struct Event {
    pub(super) flow: FlowId,
    pub(super) what: What,
}

/// All that is to come.
#[derive(Default)]
pub(super) struct Queue {
    events: BTreeMap<(Instant, u64), Event>,
    last: u64,
    /// What waits for a path to heal or a member to thaw, in order.
    parked: Vec<Event>,
}

impl Queue {
    pub(super) fn push(&mut self, at: Instant, flow: FlowId, what: What) {
        self.last += 1;
        self.events.insert((at, self.last), Event { flow, what });
    }

    /// When the next event is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next event that is due by `now`.
    pub(super) fn pop(&mut self, now: Instant) -> Option<(Instant, Event)> {
        let first = self.events.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        let ((at, _), event) = first.remove_entry();
        Some((at, event))
    }

    pub(super) fn park(&mut self, event: Event) {
        self.parked.push(event);
    }

    pub(super) fn unpark(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.parked)
    }
}
