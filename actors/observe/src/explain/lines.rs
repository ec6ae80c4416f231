//! A history as lines: each event in words, what belongs together one below the other, and where events are not kept, that they are not.

use room::{AttemptError, Generation, Happening, Outcome, PhaseKind, Why};

use super::names::Names;
use super::{Line, Tone, ends, words};
use crate::event::{RoomEvent, RoomWhat};
use crate::history::RoomHistory;

/// Those of a room, in order.
pub(super) fn lines(history: &RoomHistory, names: &Names<'_>) -> Vec<Line> {
    let events = history.events().with_gaps();
    let mut page = Page {
        history,
        names,
        lines: Vec::new(),
    };
    let mut before = None;
    for (place, (gap, event)) in events.iter().enumerate() {
        if *gap > 0 {
            page.left_out(*gap);
        }
        let next = events.get(place + 1).copied();
        page.event(before.filter(|_| *gap == 0), event, next);
        before = Some(*event);
    }
    page.lines
}

struct Page<'a> {
    history: &'a RoomHistory,
    names: &'a Names<'a>,
    lines: Vec<Line>,
}

impl Page<'_> {
    /// An event; the one just before it, if that is kept; and the next that is kept, with how many were left out before it.
    fn event(&mut self, before: Option<&RoomEvent>, event: &RoomEvent, next: Option<(u32, &RoomEvent)>) {
        if let RoomWhat::TimerFired { .. } = &event.what {
            return match due(next) {
                Due::Unknown => self.said(event, event),
                Due::Passed(what) => self.line(event, Tone::Warn, what),
                Due::SaidNext => {}
            };
        }
        let follows = next.filter(|(gap, _)| *gap == 0).map(|(_, next)| next);
        if follows.is_some_and(|next| is_reason_of(event, next)) {
            // Told below what it is the reason of.
            return;
        }
        self.said(event, event);
        if let Some(reason) = before.filter(|before| is_reason_of(before, event)) {
            self.said(reason, event);
        }
    }

    /// An event in words, as a line beside `at`.
    fn said(&mut self, event: &RoomEvent, at: &RoomEvent) {
        let (tone, what) = words::happened(event, self.history, self.names);
        self.line(at, tone, what);
    }

    fn line(&mut self, at: &RoomEvent, tone: Tone, what: String) {
        self.lines.push(Line {
            at_us: (at.at - self.history.facts().arrived()).micros,
            attempt: attempt(at).0,
            tone,
            what,
        });
    }

    /// At the time of what is told before it.
    fn left_out(&mut self, events: u32) {
        let (at_us, attempt) = self
            .lines
            .last()
            .map_or((0, 1), |line| (line.at_us, line.attempt));
        let what = match events {
            1 => "(1 event in between is not kept)".to_owned(),
            _ => format!("({events} events in between are not kept)"),
        };
        self.lines.push(Line {
            at_us,
            attempt,
            tone: Tone::Note,
            what,
        });
    }
}

/// The attempt that an event is about: an old one may be returned while another is under way.
fn attempt(event: &RoomEvent) -> Generation {
    match &event.what {
        RoomWhat::Room(happening) => match happening {
            Happening::LegReturned { of, .. }
            | Happening::ToldAgain { of, .. }
            | Happening::DrainOverdue { of, .. }
            | Happening::Fenced { of, .. } => *of,
            Happening::Transition(_)
            | Happening::AttemptFailed { .. }
            | Happening::Routed(_)
            | Happening::Granted { .. }
            | Happening::Computed { .. }
            | Happening::Published { .. }
            | Happening::Delivered { .. }
            | Happening::Paused
            | Happening::Resumed
            | Happening::LegOpened { .. } => event.generation,
        },
        RoomWhat::WorkerSaid { generation, .. } => *generation,
        RoomWhat::Opened(_)
        | RoomWhat::Cached { .. }
        | RoomWhat::Moved(_)
        | RoomWhat::NotSent { .. }
        | RoomWhat::TimerFired { .. }
        | RoomWhat::OwnerSilent { .. }
        | RoomWhat::OwnerDied { .. }
        | RoomWhat::Buried { .. }
        | RoomWhat::Answered { .. }
        | RoomWhat::Ended { .. } => event.generation,
    }
}

/// Whether a worker gives a reason for the failure that comes next.
fn is_reason_of(event: &RoomEvent, next: &RoomEvent) -> bool {
    if let RoomWhat::WorkerSaid {
        worker: who,
        generation,
        ..
    } = &event.what
        && let RoomWhat::Room(Happening::AttemptFailed { worker, .. }) = &next.what
    {
        return (who, *generation) == (worker, next.generation);
    }
    false
}

/// What was due when an owner was told that something is.
enum Due {
    /// A deadline of the room's phase, or of its request.
    Passed(String),
    /// What comes next says so by itself, such as that a worker is told again; or it was nothing of this room.
    SaidNext,
    /// Its owner has not said.
    Unknown,
}

/// Shows in what comes next.
fn due(next: Option<(u32, &RoomEvent)>) -> Due {
    let Some((gap, next)) = next else {
        return Due::Unknown;
    };
    if gap > 0 {
        return Due::SaidNext;
    }
    match &next.what {
        RoomWhat::OwnerSilent { .. } => Due::Unknown,
        RoomWhat::Room(happening) => passed(happening).map_or(Due::SaidNext, Due::Passed),
        RoomWhat::Opened(_)
        | RoomWhat::Cached { .. }
        | RoomWhat::Moved(_)
        | RoomWhat::NotSent { .. }
        | RoomWhat::WorkerSaid { .. }
        | RoomWhat::TimerFired { .. }
        | RoomWhat::OwnerDied { .. }
        | RoomWhat::Buried { .. }
        | RoomWhat::Answered { .. }
        | RoomWhat::Ended { .. } => Due::SaidNext,
    }
}

/// The deadline that this follows from, if it follows from one.
fn passed(happening: &Happening) -> Option<String> {
    if let Happening::AttemptFailed {
        error: AttemptError::NoProgress(phase),
        ..
    } = happening
    {
        return Some(format!(
            "a deadline passed in {phase}: {}",
            ends::deadline(*phase)
        ));
    }
    let Happening::Transition(step) = happening else {
        return None;
    };
    let Why::Outcome(fixed) = step.why else {
        return None;
    };
    if let Outcome::Expired(phase) = fixed {
        return Some(format!("a deadline passed in {phase}: the request's own"));
    }
    let waited = step.from == PhaseKind::Queued && matches!(fixed, Outcome::Failed(_));
    waited.then(|| {
        format!(
            "a deadline passed in queued: {}",
            ends::deadline(PhaseKind::Queued)
        )
    })
}
