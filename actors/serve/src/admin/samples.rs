//! Rooms as a gateway lists them, for tests.

use super::RoomRow;

fn room(name: &str, phase: &str, workers: &[&str]) -> RoomRow {
    RoomRow {
        room: name.to_owned(),
        request_id: format!("req_{name}"),
        generation: 1,
        phase: phase.to_owned(),
        age_ms: 1_000,
        workers: workers.iter().map(|&worker| worker.to_owned()).collect(),
        ..RoomRow::default()
    }
}

/// One that has been open for a second.
pub(crate) fn open(name: &str, phase: &str, workers: &[&str]) -> RoomRow {
    RoomRow {
        waits_for: "something".to_owned(),
        ..room(name, phase, workers)
    }
}

/// One that lasted a second, and ended two seconds ago.
pub(crate) fn ended(
    name: &str,
    ended_in: &str,
    (outcome, reason): (&str, &str),
    workers: &[&str],
) -> RoomRow {
    RoomRow {
        outcome: Some(outcome.to_owned()),
        reason: Some(reason.to_owned()),
        ended_in: Some(ended_in.to_owned()),
        ended_ms_ago: Some(2_000),
        ended_at: Some("2026-01-01T00:00:00.000Z".to_owned()),
        ..room(name, "ended", workers)
    }
}
