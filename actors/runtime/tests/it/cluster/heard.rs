//! Hears all that is told of on a node, and is given what is to be traced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use observe::{
    Event, Keep, Listener, NodeEvent, NodeWhat, RoomEvent, RoomHistory, RoomWhat, StayHistory, StayWhat,
    Text, Told, TraceSink,
};
use room::{Attempt, Happening, NodeId, Proof, StayPhase};
use runtime::Counts;

/// All that was told.
#[derive(Default)]
pub(crate) struct Heard {
    all: Mutex<Vec<Event>>,
    traced_rooms: Mutex<Vec<(RoomHistory, Keep)>>,
    traced_stays: Mutex<Vec<StayHistory>>,
}

impl Listener for Heard {
    fn told(&self, told: &Told<'_>) {
        self.all.lock().unwrap().push(told.event());
    }
}

impl TraceSink for Heard {
    fn request(&self, rooms: &[Arc<RoomHistory>], keep: Keep) {
        let kept = rooms.iter().map(|history| (RoomHistory::clone(history), keep));
        self.traced_rooms.lock().unwrap().extend(kept);
    }

    fn stay(&self, history: &Arc<StayHistory>) {
        self.traced_stays
            .lock()
            .unwrap()
            .push(StayHistory::clone(history));
    }
}

impl Heard {
    pub(crate) fn traced_rooms(&self) -> Vec<(RoomHistory, Keep)> {
        self.traced_rooms.lock().unwrap().clone()
    }

    pub(crate) fn traced_stays(&self) -> Vec<StayHistory> {
        self.traced_stays.lock().unwrap().clone()
    }

    /// The events of rooms.
    pub(crate) fn rooms(&self) -> Vec<RoomEvent> {
        let of_room = |event: &Event| match event {
            Event::Room(event) => Some(event.clone()),
            Event::Stay(_) | Event::Node(_) => None,
        };
        self.all.lock().unwrap().iter().filter_map(of_room).collect()
    }

    /// Whether every room that was opened has ended, as far as was told.
    pub(crate) fn all_ended(&self) -> bool {
        let rooms = self.rooms();
        let count = |is: fn(&RoomWhat) -> bool| rooms.iter().filter(|event| is(&event.what)).count();
        count(|what| matches!(what, RoomWhat::Opened(_)))
            == count(|what| matches!(what, RoomWhat::Ended { .. }))
    }

    /// Leases that were proven returned only by a digest: each stands for a message that was lost.
    pub(crate) fn healed(&self) -> usize {
        let by_digest = |event: &&RoomEvent| {
            matches!(
                event.what,
                RoomWhat::Room(Happening::LegReturned {
                    by: Proof::NotHeld,
                    ..
                })
            )
        };
        self.rooms().iter().filter(by_digest).count()
    }

    /// What workers have said of attempts that failed there, or of their own end.
    pub(crate) fn said(&self) -> Vec<Text> {
        let rooms = self.rooms().into_iter();
        let said = rooms.filter_map(|event| match event.what {
            RoomWhat::WorkerSaid { why, .. } => Some(why),
            _ => None,
        });
        said.collect()
    }

    /// Why links with workers have ended, as the gateway was told.
    pub(crate) fn ends(&self) -> Vec<Text> {
        let all = self.all.lock().unwrap();
        let ends = all.iter().filter_map(|event| match event {
            Event::Node(NodeEvent {
                what: NodeWhat::WorkerUnlinked { why, .. },
                ..
            }) => Some(Text::clone(why)),
            _ => None,
        });
        ends.collect()
    }

    /// What is counted is what was told.
    pub(crate) fn check_counts(&self, counts: &Counts) {
        let rooms = self.rooms();
        let count = |is: fn(&RoomWhat) -> bool| rooms.iter().filter(|event| is(&event.what)).count() as u64;
        let said = |is: fn(&Happening) -> bool| {
            let of = |event: &&RoomEvent| matches!(&event.what, RoomWhat::Room(happening) if is(happening));
            rooms.iter().filter(of).count() as u64
        };
        assert_eq!(counts.opened, count(|what| matches!(what, RoomWhat::Opened(_))));
        assert_eq!(
            counts.outcomes.values().sum::<u64>(),
            count(|what| matches!(what, RoomWhat::Answered { .. }))
        );
        assert_eq!(
            counts.retries,
            said(|h| matches!(h, Happening::AttemptFailed { retried: true, .. }))
        );
        assert_eq!(counts.fences, said(|h| matches!(h, Happening::Fenced { .. })));
        assert_eq!(
            counts.drains_overdue,
            said(|h| matches!(h, Happening::DrainOverdue { .. }))
        );
        assert_eq!(
            counts.buried,
            count(|what| matches!(what, RoomWhat::Buried { .. }))
        );
        let pulls: u64 = counts.pulled.values().map(|pulled| pulled.2).sum();
        assert_eq!(pulls, count(|what| matches!(what, RoomWhat::Moved(_))));
    }

    /// Every stay begins, steps from where it is, and ends, unless its worker does before. Each is told of by one thread.
    pub(crate) fn check_stays(&self) {
        let mut here: BTreeMap<(NodeId, Attempt), Option<StayPhase>> = BTreeMap::new();
        let mut names = BTreeMap::new();
        let mut opened = BTreeSet::new();
        let all = self.all.lock().unwrap();
        let is_lost = |event: &Event| matches!(event, Event::Node(event) if matches!(&event.what, NodeWhat::Counted { counters, .. } if counters.transitions_lost > 0));
        if all.iter().any(is_lost) {
            return;
        }
        for event in all.iter() {
            match event {
                Event::Stay(event) => {
                    let stay = (event.worker, event.attempt);
                    match &event.what {
                        StayWhat::Opened(facts) => {
                            assert_eq!((facts.worker, facts.attempt), stay);
                            assert!(opened.insert(stay), "{event:?}");
                            names.insert(facts.worker, facts.name.clone());
                        }
                        StayWhat::Step(step) => {
                            assert!(step.from.is_some() || opened.remove(&stay), "{event:?}");
                            assert_eq!(here.remove(&stay).flatten(), step.from, "{event:?}");
                            if step.to.is_some() {
                                here.insert(stay, step.to);
                            }
                        }
                        _ => {}
                    }
                }
                Event::Node(event) => {
                    // Whatever was there went with it.
                    if let NodeWhat::WorkerEnded { name: gone, .. } = &event.what {
                        here.retain(|(worker, _), _| names.get(worker) != Some(gone));
                    }
                }
                Event::Room(_) => {}
            }
        }
        assert!(here.is_empty(), "{here:?}");
    }
}

/// A room's history is a whole life, in legal steps.
pub(crate) fn check_history(history: &RoomHistory) {
    let events: Vec<&RoomEvent> = history.events().iter().collect();
    let (first, last) = (events[0], events[events.len() - 1]);
    assert!(matches!(first.what, RoomWhat::Opened(_)), "{events:#?}");
    assert!(matches!(last.what, RoomWhat::Ended { .. }), "{events:#?}");
    assert!(events.is_sorted_by_key(|event| event.at), "{events:#?}");
    let answers = events
        .iter()
        .filter(|event| matches!(event.what, RoomWhat::Answered { .. }));
    assert_eq!(answers.count(), 1, "INV-03: {events:#?}");
    if history.events().left_out() > 0 {
        return;
    }
    let mut phase = room::PhaseKind::Queued;
    let mut delivered = 0;
    for event in &events {
        match &event.what {
            RoomWhat::Room(Happening::Transition(step)) => {
                assert_eq!(step.from, phase, "{events:#?}");
                assert!(step.from.may_become(step.to), "{events:#?}");
                phase = step.to;
            }
            // An heir begins with what its supervisor knows.
            RoomWhat::OwnerDied { .. } => phase = room::PhaseKind::Draining,
            RoomWhat::Room(Happening::Delivered { from, count }) => {
                assert!(*from >= delivered, "INV-06: {events:#?}");
                delivered = from + count;
            }
            _ => {}
        }
    }
    let state = history.state();
    assert!(state.stream.tokens >= delivered, "{events:#?}");
    assert_eq!(state.phase, room::PhaseKind::Ended);
}
