//! Words for labels.

use std::collections::BTreeSet;

use observe::labels;
use room::{AbortBy, AttemptError, Failure, Finish, Hold, Outcome, PhaseKind, Refusal};

fn errors() -> Vec<AttemptError> {
    let plain = [
        AttemptError::WorkerLost,
        AttemptError::PullFailed,
        AttemptError::EngineFailed,
        AttemptError::Gap,
        AttemptError::UnknownAttempt,
        AttemptError::Evicted,
        AttemptError::NoToken,
        AttemptError::Refused(Refusal::NoSlot),
    ];
    let stuck = PhaseKind::ALL.map(AttemptError::NoProgress);
    plain.into_iter().chain(stuck).collect()
}

pub(crate) fn outcomes() -> Vec<Outcome> {
    let aborts = [
        AbortBy::ClientGone,
        AbortBy::Operator,
        AbortBy::Shutdown,
        AbortBy::Sibling,
    ];
    let failures = [
        Failure::NoWorker,
        Failure::QueueFull,
        Failure::NoCredit,
        Failure::TooLarge,
        Failure::OwnerLost,
    ];
    let completed = [Finish::Stop, Finish::Length].map(Outcome::Completed);
    completed
        .into_iter()
        .chain(aborts.map(Outcome::Aborted))
        .chain(failures.map(Outcome::Failed))
        .chain(
            errors()
                .into_iter()
                .map(|error| Outcome::Failed(Failure::Attempts(error))),
        )
        .chain(PhaseKind::ALL.map(Outcome::Expired))
        .collect()
}

#[test]
fn each_outcome_has_a_label_and_a_reason_of_its_own() {
    let words: BTreeSet<_> = outcomes().into_iter().map(labels::outcome).collect();
    assert_eq!(words.len(), outcomes().len());
    for (outcome, reason) in words {
        let plain = |word: &str| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        assert!(plain(outcome) && plain(reason), "{outcome} {reason}");
    }
}

#[test]
fn the_reason_of_a_failed_room_is_that_of_its_last_attempt() {
    for error in errors() {
        let (_, reason) = labels::outcome(Outcome::Failed(Failure::Attempts(error)));
        assert_eq!(reason, format!("attempts_{}", labels::attempt_error(error)));
    }
    let stuck = AttemptError::NoProgress(PhaseKind::Pulling);
    assert_eq!(labels::attempt_error(stuck), "no_progress_pulling");
}

#[test]
fn what_is_in_order_is_whole_or_was_not_wanted() {
    let in_order = outcomes()
        .into_iter()
        .filter(|outcome| labels::is_in_order(*outcome));
    let words: BTreeSet<_> = in_order.map(|outcome| labels::outcome(outcome).0).collect();
    assert_eq!(words, BTreeSet::from(["completed", "aborted"]));
}

#[test]
fn who_holds_blocks_has_one_word() {
    assert_eq!(labels::holds(room::Holds::NONE), "none");
    assert_eq!(
        Hold::ALL.len(),
        3,
        "`labels::holds` has a word for each set of three"
    );
}
