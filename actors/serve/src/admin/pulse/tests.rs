use std::sync::Arc;

use observe::{
    Drawing, Facts, Listener, Moved, Prepared, RoomEvent, RoomHistory, RoomWhat, SharedFacts, Told, Trace,
    TraceId,
};
use room::{Finish, Generation, Happening, NodeId, Outcome, Priority, RoomId, Span, Time};

use super::{PAIRS, Pulse, SECONDS};

const ROOM: RoomId = RoomId {
    gateway: NodeId(9),
    seq: 1,
};

fn at(ms: u64) -> Time {
    Time { micros: ms * 1_000 }
}

fn facts() -> SharedFacts {
    Arc::new(Facts {
        room: ROOM,
        first: ROOM,
        index: 0,
        of: 1,
        request_id: "r".into(),
        trace: Trace::new(TraceId::new(1)),
        model: "m".into(),
        prompt_tokens: 1,
        max_tokens: 9,
        drawing: Drawing {
            temperature: 0.0,
            top_p: 1.0,
            seed: 0,
        },
        priority: Priority(0),
        opened: at(10_000),
        prepared: Prepared::default(),
        deadline: at(99_000),
    })
}

fn tell(pulse: &Pulse, ms: u64, what: RoomWhat, gap: Option<Span>) {
    let facts = facts();
    let history = RoomHistory::new(Arc::clone(&facts));
    let event = RoomEvent {
        at: at(ms),
        room: ROOM,
        generation: Generation::FIRST,
        what,
    };
    pulse.told(&Told::Room {
        event: &event,
        facts: &facts,
        state: history.state(),
        gap,
    });
}

fn delivered(from: u32, count: u32) -> RoomWhat {
    RoomWhat::Room(Happening::Delivered { from, count })
}

const DONE: Outcome = Outcome::Completed(Finish::Stop);

#[test]
fn a_second_counts_what_happened_in_it() {
    let pulse = Pulse::default();
    tell(&pulse, 10_000, RoomWhat::Opened(facts()), None);
    tell(&pulse, 10_400, delivered(0, 1), None);
    tell(&pulse, 11_100, delivered(1, 4), Some(Span::from_millis(700)));
    let answered = RoomWhat::Answered {
        outcome: DONE,
        delivered: 5,
    };
    tell(&pulse, 11_200, answered, None);
    tell(&pulse, 12_900, RoomWhat::Ended { outcome: DONE }, None);
    let series = pulse.series(at(13_000), 10);
    assert_eq!(series.from_s, 10);
    assert_eq!(series.opened, [1, 0, 0]);
    assert_eq!(series.tokens, [1, 4, 0]);
    assert_eq!(series.completed, [0, 1, 0]);
    assert_eq!(series.open, [1, 1, 0]);
    assert!(
        series.first_p50_ms[0].is_some_and(|ms| (350.0..450.0).contains(&ms)),
        "{series:?}"
    );
    assert!(
        series.between_p50_ms[1].is_some_and(|ms| (610.0..790.0).contains(&ms)),
        "{series:?}"
    );
    assert_eq!(series.between_p50_ms[2], None);
    // Only what is new is asked for.
    assert_eq!(pulse.series(at(13_000), 12).opened.len(), 1);
    assert_eq!(pulse.series(at(13_000), 13).opened.len(), 0);
    let minute = pulse.last_minute(at(13_000));
    assert_eq!((minute.opened, minute.completed, minute.failed), (1, 1, 0));
    assert!((minute.tokens_per_s - 5.0 / minute.seconds as f64).abs() < 1e-9);
}

#[test]
fn what_is_remembered_is_bounded_and_silence_is_cheap() {
    let pulse = Pulse::default();
    for second in 0..SECONDS as u64 * 2 {
        tell(&pulse, second * 1_000, delivered(1, 1), None);
    }
    let now = at(SECONDS as u64 * 2_000);
    assert_eq!(pulse.series(now, 0).tokens.len(), SECONDS);
    // A year later.
    let later = at(31_536_000_000);
    let series = pulse.series(later, 0);
    assert!(series.tokens.len() <= SECONDS + 1 && series.tokens.iter().all(|tokens| *tokens == 0));
    for pair in 0..PAIRS as u64 + 10 {
        let moved = Moved {
            from: NodeId(pair),
            to: NodeId(1),
            bytes: 5,
            descriptors: 1,
            lasted: Span::default(),
            transport: "t".into(),
        };
        tell(&pulse, 31_536_000_000 + pair, RoomWhat::Moved(moved), None);
    }
    let moves = pulse.moves();
    assert_eq!(moves.len(), PAIRS);
    assert!(moves.iter().all(|pair| pair.from >= NodeId(10)));
}
