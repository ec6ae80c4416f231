//! Which traces are kept.

use observe::{Keep, RoomWhat, Sampling, Trace, TraceId};
use room::{AbortBy, Failure, Finish, Generation, Happening, Outcome, PhaseKind, Span, Why};

use crate::kit::{self, PREFILL, event, step};

const DONE: Outcome = Outcome::Completed(Finish::Stop);

fn sampling() -> Sampling {
    Sampling {
        ratio: 0.0,
        slow_first_token: Span::from_millis(1_000),
        slow_total: Span::from_millis(5_000),
    }
}

/// Of a room that had its first token and its outcome so long after its request came.
#[track_caller]
fn check(flags: u8, first_ms: u64, outcome: Outcome, total_ms: u64, keep: Option<Keep>) {
    let history = kit::ended(flags, Some(900 + first_ms), outcome, 900 + total_ms);
    assert_eq!(
        sampling().tail(history.facts(), history.state()),
        keep,
        "{outcome:?}"
    );
}

#[test]
fn what_went_wrong_or_took_long_is_kept_and_the_rest_is_not() {
    check(0, 200, DONE, 400, None);
    check(0, 200, Outcome::Aborted(AbortBy::ClientGone), 400, None);
    check(Trace::SAMPLED, 200, DONE, 400, Some(Keep::Head));
    check(
        0,
        200,
        Outcome::Failed(Failure::NoCredit),
        400,
        Some(Keep::Failed),
    );
    check(
        0,
        200,
        Outcome::Expired(PhaseKind::Decoding),
        400,
        Some(Keep::Expired),
    );
    check(0, 999, DONE, 1_200, None);
    check(0, 1_000, DONE, 1_200, Some(Keep::Slow));
    check(0, 200, DONE, 4_999, None);
    check(0, 200, DONE, 5_000, Some(Keep::Slow));
}

#[test]
fn what_was_migrated_or_fenced_is_kept() {
    let retry = Why::Retry(room::AttemptError::WorkerLost);
    let of = Generation::FIRST;
    for (what, keep) in [
        (
            step(PhaseKind::Decoding, PhaseKind::Queued, retry, 1),
            Keep::Migrated,
        ),
        (
            RoomWhat::Room(Happening::Fenced { worker: PREFILL, of }),
            Keep::Fenced,
        ),
    ] {
        let mut history = kit::ended(0, Some(1_000), DONE, 1_100);
        history.push(&event(1_050, 2, what));
        assert_eq!(sampling().tail(history.facts(), history.state()), Some(keep));
    }
}

#[test]
fn the_share_that_is_kept_is_the_configured_one_and_the_client_is_heard() {
    let share = |ratio: f64| {
        let sampling = Sampling { ratio, ..sampling() };
        // Ids as they are: spread evenly over their low 56 bits.
        let ids = (0..1_000u128).map(|n| TraceId::new((n << 120) | ((n << 56) / 1_000)));
        ids.filter(|id| sampling.head(Trace::new(*id)).is_sampled())
            .count()
    };
    assert_eq!([share(0.0), share(0.25), share(1.0)], [0, 250, 1_000]);
    let asked = Trace {
        flags: Trace::SAMPLED,
        ..Trace::new(TraceId::new(u128::MAX))
    };
    assert!(sampling().head(asked).is_sampled());
}

#[test]
fn workers_know_of_what_was_kept_from_the_beginning() {
    for keep in [
        Keep::Failed,
        Keep::Expired,
        Keep::Migrated,
        Keep::Fenced,
        Keep::Slow,
    ] {
        assert!(keep.is_late(), "{}", keep.name());
    }
    assert!(!Keep::Head.is_late());
}
