//! The bounded restart policy.

use room::{Restart, Restarts, Span};

use crate::room_kit::ms;

fn check(failures_ms: &[u64], expected: &[Option<u64>]) {
    let mut restarts = Restarts::new(3, Span::from_millis(1_000), Span::from_millis(10));
    let decided: Vec<_> = failures_ms
        .iter()
        .map(|at| match restarts.on_failure(ms(*at)) {
            Restart::After(pause) => Some(pause.as_millis()),
            Restart::GiveUp => None,
        })
        .collect();
    assert_eq!(decided, expected, "failures at {failures_ms:?}");
}

#[test]
fn restarts_are_bounded_within_the_span() {
    check(&[0], &[Some(0)]);
    check(&[0, 1, 2], &[Some(0), Some(10), Some(20)]);
    check(&[0, 1, 2, 3], &[Some(0), Some(10), Some(20), None]);
    // What is older than the span does not count.
    check(
        &[0, 500, 999, 1_000, 1_500],
        &[Some(0), Some(10), Some(20), Some(20), Some(20)],
    );
    check(&[0, 2_000, 4_000, 6_000], &[Some(0); 4]);
}

#[test]
fn no_pause_is_longer_than_the_span() {
    let mut restarts = Restarts::new(3, Span::from_millis(1_000), Span::from_millis(900));
    let pauses: Vec<_> = (0..4).map(|at| restarts.on_failure(ms(at))).collect();
    let after = |millis| Restart::After(Span::from_millis(millis));
    assert_eq!(pauses, [after(0), after(900), after(1_000), Restart::GiveUp]);
}
