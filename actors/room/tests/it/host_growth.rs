//! Blocks and slots: who is refused, who grows, who gives way.

use room::{EngineInput, FromOwner, HostInput, Job};

use crate::host_kit::{FIRST_TOKEN, Worker, attempt, check, job};

#[test]
fn refusals_name_their_reason() {
    let mut w = Worker::new(false);
    check(
        &w.owner(attempt(1, 1), FromOwner::Reserve(job(7, 25))),
        &["tell 1#1: Refused TooLarge"],
    );
    check(
        &w.owner(attempt(1, 1), FromOwner::Reserve(job(7, 0))),
        &["tell 1#1: Refused OutOfOrder"],
    );
    w.owner(attempt(2, 1), FromOwner::Reserve(job(8, 20)));
    w.owner(attempt(3, 1), FromOwner::Reserve(job(9, 16)));
    check(
        &w.owner(attempt(4, 1), FromOwner::Reserve(job(10, 8))),
        &["tell 4#1: Refused NoBlocks"],
    );
    w.owner(attempt(5, 1), FromOwner::Prefill(job(11, 4)));
    check(
        &w.owner(attempt(6, 1), FromOwner::Reserve(job(12, 3))),
        &["tell 6#1: Refused NoSlot"],
    );
    check(
        &w.engine(attempt(5, 1), FIRST_TOKEN),
        &["tell 5#1: Tokens 1 from 0", "offer 5#1 [11]"],
    );
    check(
        &w.owner(attempt(7, 1), FromOwner::Reserve(job(13, 3))),
        &["tell 7#1: Refused NoBlocks"],
    );
    w.feed(HostInput::Drain);
    check(
        &w.owner(attempt(7, 1), FromOwner::Reserve(job(13, 3))),
        &["tell 7#1: Refused Draining"],
    );
    w.feed(HostInput::Undrain);
    check(
        &w.owner(attempt(8, 1), FromOwner::Reserve(job(14, 3))),
        &["tell 8#1: Refused NoBlocks"],
    );
}

#[test]
fn a_prompt_fits_into_the_whole_sequence() {
    let of = |max_positions| Job {
        max_positions,
        ..job(7, 8)
    };
    for (max_positions, answer) in [
        (7, "tell 1#1: Refused OutOfOrder"),
        (8, "tell 1#1: Reserved, 0 cached"),
    ] {
        let mut w = Worker::new(false);
        check(
            &w.owner(attempt(1, 1), FromOwner::Reserve(of(max_positions))),
            &[answer],
        );
    }
}

#[test]
fn the_youngest_gives_way_and_the_oldest_grows_when_its_blocks_are_back() {
    let mut w = Worker::new(true);
    for seq in 1..=2 {
        w.owner(attempt(seq, 1), FromOwner::Reserve(job(u128::from(seq), 20)));
        w.owner(attempt(seq, 1), FromOwner::Prefill(job(u128::from(seq), 20)));
        w.engine(attempt(seq, 1), FIRST_TOKEN);
    }
    assert_eq!(w.blocks(), "0/12/0/0");
    check(
        &w.engine(attempt(1, 1), EngineInput::NeedBlocks { n: 1 }),
        &["tell 2#1: Failed Evicted", "stop engine 2#1"],
    );
    check(
        &w.engine(attempt(2, 1), EngineInput::Computed { positions: 21 }),
        &[],
    );
    check(
        &w.owner(attempt(3, 1), FromOwner::Reserve(job(3, 3))),
        &["tell 3#1: Refused NoBlocks"],
    );
    check(
        &w.engine(attempt(2, 1), EngineInput::Stopped),
        &["grow 1#1 by [11]"],
    );
    assert_eq!(
        (w.host.counters().evictions, w.blocks()),
        (1, "0/7/5/0".to_owned())
    );
}

#[test]
fn no_more_give_way_than_have_to() {
    let mut w = Worker::new(true);
    for seq in 1..=3 {
        w.owner(attempt(seq, 1), FromOwner::Reserve(job(u128::from(seq), 12)));
        w.owner(attempt(seq, 1), FromOwner::Prefill(job(u128::from(seq), 12)));
    }
    assert_eq!(w.blocks(), "0/12/0/0");
    check(
        &w.engine(attempt(1, 1), EngineInput::NeedBlocks { n: 4 }),
        &["tell 3#1: Failed Evicted", "stop engine 3#1"],
    );
    check(
        &w.engine(attempt(3, 1), EngineInput::Stopped),
        &["grow 1#1 by [8, 9, 10, 11]"],
    );
}

/// Whoever came last has the least to lose, whatever its name.
#[test]
fn youth_is_a_matter_of_arrival() {
    let mut w = Worker::new(true);
    for seq in [3, 2, 1] {
        w.owner(attempt(seq, 1), FromOwner::Reserve(job(u128::from(seq), 12)));
        w.owner(attempt(seq, 1), FromOwner::Prefill(job(u128::from(seq), 12)));
    }
    check(
        &w.engine(attempt(2, 1), EngineInput::NeedBlocks { n: 1 }),
        &["tell 1#1: Failed Evicted", "stop engine 1#1"],
    );
}

/// A read may take long to end: its blocks are not on their way.
#[test]
fn nobody_waits_for_what_a_transfer_holds() {
    let mut w = Worker::new(true);
    for seq in 1..=3 {
        w.owner(attempt(seq, 1), FromOwner::Reserve(job(u128::from(seq), 12)));
    }
    w.owner(attempt(1, 1), FromOwner::Prefill(job(1, 12)));
    w.owner(attempt(2, 1), FromOwner::Pull { sampled: 1 });
    w.owner(attempt(2, 1), FromOwner::Close);
    assert_eq!(w.blocks(), "0/8/0/4");
    check(
        &w.engine(attempt(1, 1), EngineInput::NeedBlocks { n: 1 }),
        &["tell 3#1: Failed Evicted", "grow 1#1 by [8]"],
    );
}

#[test]
fn who_wants_more_than_there_is_harms_only_itself() {
    let mut w = Worker::new(true);
    for seq in 1..=2 {
        w.owner(attempt(seq, 1), FromOwner::Reserve(job(u128::from(seq), 12)));
        w.owner(attempt(seq, 1), FromOwner::Prefill(job(u128::from(seq), 12)));
    }
    check(
        &w.engine(attempt(1, 1), EngineInput::NeedBlocks { n: 9 }),
        &["tell 1#1: Failed Refused(TooLarge)", "stop engine 1#1"],
    );
    assert_eq!(w.phase(attempt(2, 1)), "Prefilling");
}

#[test]
fn the_youngest_gives_way_to_itself() {
    let mut w = Worker::new(true);
    for seq in 1..=2 {
        w.owner(attempt(seq, 1), FromOwner::Reserve(job(u128::from(seq), 20)));
        w.owner(attempt(seq, 1), FromOwner::Prefill(job(u128::from(seq), 20)));
    }
    check(
        &w.engine(attempt(2, 1), EngineInput::NeedBlocks { n: 1 }),
        &["tell 2#1: Failed Evicted", "stop engine 2#1"],
    );
    assert_eq!(w.phase(attempt(1, 1)), "Prefilling");
    w.engine(attempt(2, 1), EngineInput::Stopped);
    check(
        &w.owner(attempt(3, 1), FromOwner::Reserve(job(3, 3))),
        &["tell 3#1: Reserved, 0 cached"],
    );
}

#[test]
fn a_newcomer_takes_nothing_that_somebody_waits_for() {
    let mut w = Worker::new(true);
    for seq in 1..=2 {
        w.owner(attempt(seq, 1), FromOwner::Reserve(job(u128::from(seq), 12)));
        w.owner(attempt(seq, 1), FromOwner::Prefill(job(u128::from(seq), 12)));
    }
    w.engine(attempt(1, 1), EngineInput::NeedBlocks { n: 6 });
    assert_eq!(w.blocks(), "4/4/0/4", "two more are on their way");
    check(
        &w.owner(attempt(3, 1), FromOwner::Reserve(job(3, 3))),
        &["tell 3#1: Refused NoBlocks"],
    );
}

/// It may still be in the next step.
#[test]
fn a_slot_is_taken_until_the_engine_has_stopped() {
    let mut w = Worker::new(false);
    for seq in 1..=3 {
        w.owner(attempt(seq, 1), FromOwner::Prefill(job(u128::from(seq), 8)));
    }
    w.owner(attempt(1, 1), FromOwner::Close);
    check(
        &w.owner(attempt(4, 1), FromOwner::Reserve(job(4, 8))),
        &["tell 4#1: Refused NoSlot"],
    );
    w.engine(attempt(1, 1), EngineInput::Stopped);
    check(
        &w.owner(attempt(4, 1), FromOwner::Reserve(job(4, 8))),
        &["tell 4#1: Reserved, 0 cached"],
    );
}

#[test]
fn who_needs_nothing_waits_for_nothing() {
    let mut w = Worker::new(true);
    let a = attempt(1, 1);
    w.owner(a, FromOwner::Reserve(job(1, 9)));
    w.owner(a, FromOwner::Prefill(job(1, 9)));
    check(&w.engine(a, EngineInput::NeedBlocks { n: 0 }), &[]);
    // Nobody is in line: a newcomer is granted.
    w.owner(attempt(2, 1), FromOwner::Reserve(job(2, 9)));
    assert_eq!(w.phase(attempt(2, 1)), "Reserved");
}
