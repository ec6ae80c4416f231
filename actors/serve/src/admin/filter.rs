//! Which of the rooms are wanted: the query of `GET /rooms` and `GET /rooms/ended`.

use room::PhaseKind;
use serde::Deserialize;

use super::views::RoomRow;

/// What may be asked for; a field that is not here is refused.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Filter {
    /// Rooms in this phase; of those that ended, rooms that were in it when their outcome was fixed.
    phase: Option<String>,
    /// Rooms that arrived at least so long ago; of those that ended, rooms that lasted so long.
    older_than_ms: Option<u64>,
    /// Rooms that wait for this worker, for which it may hold blocks, or that had it in an earlier attempt.
    worker: Option<String>,
    /// Rooms with this outcome.
    outcome: Option<String>,
    /// Rooms whose outcome has this reason.
    reason: Option<String>,
    /// At most so many.
    limit: Option<usize>,
}

/// What a filter may have, for people who have got it wrong.
pub(super) const HELP: &str =
    "phase, older_than_ms, worker, outcome, reason and limit, such as ?phase=prefilling&older_than_ms=5000";

impl Filter {
    /// Whether it can be meant.
    pub(super) fn check(&self) -> Result<(), String> {
        for (what, word, known) in [
            ("phase", &self.phase, phases()),
            ("outcome", &self.outcome, outcomes()),
            ("reason", &self.reason, reasons()),
        ] {
            let Some(word) = word else { continue };
            if !known.split(", ").any(|one| one == word) {
                return Err(format!("there is no {what} {word:?}: there are {known}"));
            }
        }
        Ok(())
    }

    /// Those that are wanted.
    pub(super) fn apply(&self, rows: impl Iterator<Item = RoomRow>) -> Vec<RoomRow> {
        let is =
            |wanted: &Option<String>, found: Option<&String>| wanted.is_none() || wanted.as_ref() == found;
        let wanted = |row: &RoomRow| {
            is(&self.phase, Some(phase(row)))
                && self.older_than_ms.is_none_or(|least| row.age_ms >= least)
                && self.worker.as_ref().is_none_or(|worker| concerns(row, worker))
                && is(&self.outcome, row.outcome.as_ref())
                && is(&self.reason, row.reason.as_ref())
        };
        rows.filter(wanted)
            .take(self.limit.unwrap_or(usize::MAX))
            .collect()
    }
}

/// Where a room is, or was when its outcome was fixed.
fn phase(row: &RoomRow) -> &String {
    match (&row.ended_ms_ago, &row.ended_in) {
        (Some(_), Some(ended_in)) => ended_in,
        _ => &row.phase,
    }
}

/// Whether a room waits for a worker, may have blocks there, or was there before.
fn concerns(row: &RoomRow, worker: &str) -> bool {
    row.held_by.iter().any(|holder| holder.worker == worker)
        || row.workers.iter().any(|known| known == worker)
        || row.waits_for.split([' ', ',']).any(|word| word == worker)
}

/// The phases that a room can be open in.
pub(crate) fn phases() -> String {
    let live = PhaseKind::ALL.iter().filter(|phase| **phase != PhaseKind::Ended);
    let names: Vec<&str> = live.map(|phase| phase.name()).collect();
    names.join(", ")
}

/// The outcomes that a room can end with.
pub(crate) fn outcomes() -> String {
    labels(|(outcome, _)| outcome)
}

/// The reasons that outcomes can have.
pub(crate) fn reasons() -> String {
    labels(|(_, reason)| reason)
}

fn labels(word: impl Fn((&'static str, &'static str)) -> &'static str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for outcome in observe::outcomes() {
        let word = word(observe::labels::outcome(outcome));
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::Filter;
    use crate::admin::samples::{ended, open};

    fn filter(query: &str) -> Filter {
        serde_json::from_str(query).expect("a filter")
    }

    #[track_caller]
    fn check(query: &str, wanted: &[&str]) {
        let filter = filter(query);
        filter.check().expect("it can be meant");
        let rows = [
            open("1", "decoding", &["prefill-0", "decode-1"]),
            open("2", "prefilling", &["prefill-0"]),
            ended(
                "3",
                "decoding",
                ("failed", "attempts_worker_lost"),
                &["prefill-0", "decode-0"],
            ),
            ended("4", "prefilling", ("aborted", "client_gone"), &["prefill-0"]),
        ];
        let found: Vec<String> = filter
            .apply(rows.into_iter())
            .into_iter()
            .map(|row| row.room)
            .collect();
        assert_eq!(found, wanted, "{query}");
    }

    #[test]
    fn rooms_are_found_by_what_they_are_and_were() {
        check("{}", &["1", "2", "3", "4"]);
        check(r#"{"limit": 2}"#, &["1", "2"]);
        check(r#"{"phase": "decoding"}"#, &["1", "3"]);
        check(r#"{"outcome": "failed"}"#, &["3"]);
        check(r#"{"reason": "client_gone"}"#, &["4"]);
        check(r#"{"outcome": "failed", "reason": "client_gone"}"#, &[]);
        // Nobody holds anything of these any more.
        check(r#"{"worker": "decode-0"}"#, &["3"]);
        check(r#"{"worker": "decode"}"#, &[]);
        check(r#"{"worker": "prefill-0", "phase": "prefilling"}"#, &["2", "4"]);
        check(r#"{"older_than_ms": 1000}"#, &["1", "2", "3", "4"]);
        check(r#"{"older_than_ms": 1001}"#, &[]);
    }

    #[track_caller]
    fn refused(query: &str, said: &str) {
        let why = filter(query).check().expect_err("it cannot be meant");
        assert!(why.contains(said), "{why}");
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        refused(
            r#"{"phase": "ended"}"#,
            "there is no phase \"ended\": there are queued, reserving",
        );
        refused(
            r#"{"outcome": "lost"}"#,
            "there are completed, aborted, failed, expired",
        );
        refused(r#"{"reason": "worker_lost"}"#, "attempts_worker_lost");
    }
}
