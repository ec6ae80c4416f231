//! A room's life as phases that follow each other: what a timeline is drawn from.

use room::{Happening, PhaseKind, Span, Time};
use serde::{Deserialize, Serialize};

use crate::event::RoomWhat;
use crate::history::RoomHistory;

/// One phase, in one attempt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stretch {
    /// The phase; `prepare` is what the door did before there was a room.
    pub phase: String,
    /// In which attempt; 0 before the first.
    pub attempt: u32,
    /// Its beginning, since the room's arrival, in microseconds.
    pub from_us: u64,
    /// Its end; of the present one, now.
    pub to_us: u64,
    /// Whether it goes on.
    pub open: bool,
}

/// The phases that the history knows of. Where events are left out there is a hole.
pub(super) fn stretches(history: &RoomHistory, until: Time) -> Vec<Stretch> {
    let (facts, state) = (history.facts(), history.state());
    let arrived = facts.arrived();
    let mut all = Vec::new();
    let mut push = |phase: &str, attempt: u32, from: Time, to: Time, open: bool| {
        all.push(Stretch {
            phase: phase.to_owned(),
            attempt,
            from_us: (from - arrived).micros,
            to_us: (to - arrived).micros,
            open,
        });
    };
    if facts.prepared.in_all > Span::default() {
        push("prepare", 0, arrived, facts.opened, false);
    }
    for event in history.events().iter() {
        let RoomWhat::Room(Happening::Transition(step)) = &event.what else {
            continue;
        };
        let from = Time {
            micros: event.at.micros.saturating_sub(step.lasted.micros),
        };
        // The step to the next attempt belongs to the one that failed.
        let attempt = match step.to {
            PhaseKind::Queued => event.generation.0.saturating_sub(1),
            PhaseKind::Reserving
            | PhaseKind::Prefilling
            | PhaseKind::Pulling
            | PhaseKind::Decoding
            | PhaseKind::Draining
            | PhaseKind::Ended => event.generation.0,
        };
        push(step.from.name(), attempt, from, event.at, false);
    }
    if state.ended.is_none() {
        push(state.phase.name(), state.generation.0, state.entered, until, true);
    }
    all
}
