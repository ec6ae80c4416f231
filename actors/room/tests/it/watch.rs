//! The supervisor's table of timers.

use room::{Alarm, Span, WatchTable};

use crate::room_kit::ms;

fn table() -> WatchTable<u32> {
    WatchTable::new(Span::from_millis(100))
}

#[test]
fn a_deadline_asks_and_silence_kills() {
    let mut table = table();
    table.arm(1, ms(10));
    assert!(!table.is_empty());
    assert_eq!(table.poll_alarm(ms(9)), None);
    assert_eq!(table.poll_alarm(ms(12)), Some(Alarm::Ask(1)));
    // The grace counts from the question, though it came late.
    assert_eq!(table.poll_timeout(), Some(ms(112)));
    assert_eq!(table.poll_alarm(ms(111)), None);
    assert_eq!(table.poll_alarm(ms(112)), Some(Alarm::Kill(1)));
    assert!(table.is_empty());
    assert_eq!(table.poll_timeout(), None);
}

#[test]
fn arming_and_disarming_are_answers() {
    let mut table = table();
    table.arm(1, ms(10));
    table.arm(2, ms(10));
    assert_eq!(table.poll_alarm(ms(10)), Some(Alarm::Ask(1)));
    assert_eq!(table.poll_alarm(ms(10)), Some(Alarm::Ask(2)));
    table.arm(1, ms(500));
    assert!(table.disarm(2));
    assert!(!table.disarm(2));
    assert!(table.is_watched(1) && !table.is_watched(2));
    assert_eq!(table.poll_alarm(ms(499)), None);
    assert_eq!(table.poll_alarm(ms(500)), Some(Alarm::Ask(1)));
}

#[test]
fn the_earliest_goes_first_and_moving_leaves_nothing_behind() {
    let mut table = table();
    for key in 0..100 {
        table.arm(key, ms(1_000));
        table.arm(key, ms(u64::from(200 - key)));
    }
    assert_eq!((table.len(), table.poll_timeout()), (100, Some(ms(101))));
    let asked: Vec<_> = std::iter::from_fn(|| table.poll_alarm(ms(200))).collect();
    assert_eq!(asked, (0..100).rev().map(Alarm::Ask).collect::<Vec<_>>());
}

#[test]
fn a_deadline_that_was_moved_on_is_neither_asked_for_early_nor_late() {
    let mut table = table();
    table.arm(1, ms(10));
    for at in [20, 500, 300] {
        table.arm(1, ms(at));
    }
    table.arm(2, ms(15));
    assert_eq!(table.poll_alarm(ms(14)), None);
    assert_eq!(table.poll_alarm(ms(15)), Some(Alarm::Ask(2)));
    assert_eq!(table.poll_alarm(ms(114)), None);
    assert_eq!(table.poll_timeout(), Some(ms(115)));
    assert!(table.disarm(2));
    assert_eq!(table.poll_timeout(), Some(ms(300)));
    table.arm(1, ms(200));
    assert_eq!(table.poll_alarm(ms(199)), None);
    assert_eq!(table.poll_alarm(ms(200)), Some(Alarm::Ask(1)));
    assert_eq!(table.poll_alarm(ms(300)), Some(Alarm::Kill(1)));
    assert!(table.is_empty());
}
