//! Which of the rooms are wanted: the query of `GET /rooms`.

use room::PhaseKind;
use serde::Deserialize;

use super::views::RoomRow;

/// What may be asked for; a field that is not here is refused.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Filter {
    /// Rooms in this phase.
    phase: Option<String>,
    /// Rooms that arrived at least so long ago.
    older_than_ms: Option<u64>,
    /// Rooms that wait for this worker, or for which it may hold blocks.
    worker: Option<String>,
    /// At most so many.
    limit: Option<usize>,
}

/// What a filter may have, for people who have got it wrong.
pub(super) const HELP: &str =
    "phase, older_than_ms, worker and limit, such as ?phase=prefilling&older_than_ms=5000";

impl Filter {
    /// Whether it can be meant.
    pub(super) fn check(&self) -> Result<(), String> {
        let known = |name: &str| PhaseKind::ALL.iter().any(|phase| phase.name() == name);
        match &self.phase {
            Some(phase) if !known(phase) => Err(format!(
                "there is no phase {phase:?}: the phases are {}",
                phases()
            )),
            _ => Ok(()),
        }
    }

    /// Those that are wanted.
    pub(super) fn apply(&self, rows: impl Iterator<Item = RoomRow>) -> Vec<RoomRow> {
        let wanted = |row: &RoomRow| {
            self.phase.as_ref().is_none_or(|phase| row.phase == *phase)
                && self.older_than_ms.is_none_or(|least| row.age_ms >= least)
                && self.worker.as_ref().is_none_or(|worker| concerns(row, worker))
        };
        rows.filter(wanted)
            .take(self.limit.unwrap_or(usize::MAX))
            .collect()
    }
}

/// Whether a room waits for a worker, or may have blocks there.
fn concerns(row: &RoomRow, worker: &str) -> bool {
    row.held_by.iter().any(|holder| holder.worker == worker)
        || row.waits_for.split([' ', ',']).any(|word| word == worker)
}

/// The phases that a room can be asked for in.
pub(crate) fn phases() -> String {
    let live = PhaseKind::ALL.iter().filter(|phase| **phase != PhaseKind::Ended);
    let names: Vec<&str> = live.map(|phase| phase.name()).collect();
    names.join(", ")
}
