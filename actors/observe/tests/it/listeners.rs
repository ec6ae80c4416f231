//! Who hears of what.

use std::sync::{Arc, Mutex};

use observe::{
    Event, Keep, Listener, NodeEvent, NodeWhat, Recorder, RoomHistory, Sampling, StayHistory, Told, Trace,
    TraceSink,
};
use room::{AbortBy, Failure, Finish, Outcome};

use crate::kit::{self, at};

#[derive(Default)]
struct Heard(Mutex<Vec<Event>>);

impl Listener for Heard {
    fn told(&self, told: &Told<'_>) {
        self.0.lock().unwrap().push(told.event());
    }
}

#[derive(Default)]
struct Traced(Mutex<Vec<Keep>>);

impl TraceSink for Traced {
    fn request(&self, rooms: &[Arc<RoomHistory>], keep: Keep) {
        assert!(!rooms.is_empty());
        self.0.lock().unwrap().push(keep);
    }

    fn stay(&self, _: &Arc<StayHistory>) {}
}

#[test]
fn every_listener_hears_of_everything() {
    let heard = [(); 2].map(|()| Arc::<Heard>::default());
    let listeners = heard.iter().map(|heard| Arc::clone(heard) as Arc<dyn Listener>);
    let recorder = Recorder::new(listeners.collect(), None, Sampling::default());
    let event = NodeEvent {
        at: at(1),
        what: NodeWhat::Undrained { name: "w".into() },
    };
    recorder.node(&event);
    for heard in heard {
        assert_eq!(*heard.0.lock().unwrap(), [Event::Node(event.clone())]);
    }
}

#[test]
fn a_sink_gets_what_is_kept_and_nothing_else() {
    let sink = Arc::<Traced>::default();
    let recorder = Recorder::new(
        Vec::new(),
        Some(Arc::clone(&sink) as Arc<dyn TraceSink>),
        Sampling {
            ratio: 0.0,
            ..Sampling::default()
        },
    );
    let done = Outcome::Completed(Finish::Stop);
    let over = |recorder: &Recorder, flags| {
        let history = Arc::new(kit::ended(flags, Some(1_100), done, 1_200));
        recorder.room_over(&history).len()
    };
    assert_eq!(over(&recorder, 0), 0);
    assert_eq!(*sink.0.lock().unwrap(), []);
    // Workers were told when they were given it.
    assert_eq!(over(&recorder, Trace::SAMPLED), 0);
    assert_eq!(*sink.0.lock().unwrap(), [Keep::Head]);
    // Without a sink nothing is kept, and no worker is asked to.
    let nobody = Recorder::default();
    assert_eq!(over(&nobody, Trace::SAMPLED), 0);
    assert!(!nobody.traces() && recorder.traces());
}

/// One of several answers failed: the others are part of the same trace, and all their workers are asked.
#[test]
fn a_request_is_kept_as_a_whole_when_its_last_room_is_over() {
    let sink = Arc::<Traced>::default();
    let sampling = Sampling {
        ratio: 0.0,
        ..Sampling::default()
    };
    let as_sink = Arc::clone(&sink) as Arc<dyn TraceSink>;
    let recorder = Recorder::new(Vec::new(), Some(as_sink), sampling);
    let failed = Outcome::Failed(Failure::NoWorker);
    let by_sibling = Outcome::Aborted(AbortBy::Sibling);
    let told: Vec<usize> = [by_sibling, failed, by_sibling]
        .into_iter()
        .enumerate()
        .map(|(index, outcome)| {
            let history = kit::one_of(3, index, outcome);
            recorder.room_over(&Arc::new(history)).len()
        })
        .collect();
    assert_eq!(told, [0, 0, 3]);
    assert_eq!(*sink.0.lock().unwrap(), [Keep::Failed]);
}
