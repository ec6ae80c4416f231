//! Who hears of what.

use std::sync::{Arc, Mutex};

use observe::{
    Event, Keep, Listener, NodeEvent, NodeWhat, Recorder, RoomHistory, Sampling, StayHistory, Told, Trace,
    TraceSink,
};
use room::{Finish, Outcome};

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
    fn room(&self, _: &RoomHistory, keep: Keep) {
        self.0.lock().unwrap().push(keep);
    }

    fn stay(&self, _: &StayHistory) {}
}

#[test]
fn every_listener_hears_of_everything() {
    let heard = [(); 2].map(|()| Arc::<Heard>::default());
    let listeners = heard.iter().map(|heard| Arc::clone(heard) as Arc<dyn Listener>);
    let recorder = Recorder::new(listeners.collect(), None, Sampling::default());
    let event = NodeEvent {
        at: at(1),
        what: NodeWhat::Draining { name: "w".into() },
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
    assert_eq!(recorder.room_over(&kit::ended(0, Some(1_100), done, 1_200)), None);
    let kept = recorder.room_over(&kit::ended(Trace::SAMPLED, Some(1_100), done, 1_200));
    assert_eq!(kept, Some(Keep::Head));
    assert_eq!(*sink.0.lock().unwrap(), [Keep::Head]);
    // Without a sink nothing is kept, and no worker is asked to.
    let nobody = Recorder::default();
    assert_eq!(
        nobody.room_over(&kit::ended(Trace::SAMPLED, None, done, 1_200)),
        None
    );
}
