//! Bugs planted in the product on purpose are found: a few of them, each by a seed that is known to find it soon. All of them, from
//! many seeds, are looked for by `just planted`.

use std::time::Duration;

use planted::Bug;
use sim::{Spans, hunt};

fn check(bug: Bug, invariant: &str) {
    let spans = Spans::of(Duration::from_secs(240));
    for hunted in hunt(&[bug], &[101], 20, spans, |_| {}) {
        assert!(hunted.is_found(), "{bug} is not found");
        assert!(
            hunted.found_by.contains(invariant),
            "{bug}: {:?}",
            hunted.found_by
        );
    }
}

#[test]
fn blocks_that_have_a_name_before_their_contents() {
    check(Bug::CachedBeforeComputed, "INV-01");
}

#[test]
fn siblings_that_share_a_room() {
    check(Bug::SiblingsShareRoom, "INV-03");
}

#[test]
fn random_numbers_from_a_stream() {
    check(Bug::SamplingFromStream, "INV-06");
}

#[test]
fn a_pin_that_counts_twice() {
    check(Bug::PinCountedTwice, "INV-08");
}

#[test]
fn an_abort_that_does_not_stop_the_engine() {
    check(Bug::AbortKeepsComputing, "INV-08");
}
