//! The engine on its thread: every command has an answer, and whatever happens the last event is one `Down`.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use engine::{
    Backend, BackendError, Command, DownReason, EngineConfig, EngineEvent, EngineHandle, FinishReason,
    Refusal, Sampled, SendError, SequenceKey, SequenceSpec, Slice, StepReport, Token,
};
use mock::{Faults, MockBackend, MockConfig, Sleep, no_sleep};

use crate::drive::{alone, prompt, spec};

/// Far longer than anything here takes; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

struct Running {
    handle: EngineHandle,
    events: Receiver<EngineEvent>,
}

fn start(config: MockConfig, engine: EngineConfig, sleep: Sleep) -> Running {
    let backend = MockBackend::new(config, sleep).unwrap();
    // More than any of these tests says.
    let (sink, events) = bounded(65_536);
    let sink = Arc::new(move |event| sink.try_send(event).unwrap_or_default());
    let handle = engine::start(Box::new(backend), engine, sink).unwrap();
    Running { handle, events }
}

fn simple() -> Running {
    start(MockConfig::default(), EngineConfig::default(), no_sleep())
}

impl Running {
    #[track_caller]
    fn send(&self, command: Command) {
        self.handle.send(command).unwrap();
    }

    #[track_caller]
    fn next(&self) -> EngineEvent {
        self.events.recv_timeout(PATIENCE).unwrap()
    }

    /// Events up to the first for which `last` holds.
    #[track_caller]
    fn until(&self, last: impl Fn(&EngineEvent) -> bool) -> Vec<EngineEvent> {
        let mut events = vec![self.next()];
        while !last(&events[events.len() - 1]) {
            events.push(self.next());
        }
        events
    }

    /// Nothing more is said, and nothing more is taken.
    #[track_caller]
    fn check_over(&self) {
        assert_eq!(self.handle.shutdown(PATIENCE), Ok(()));
        assert_eq!(
            self.events.try_recv(),
            Err(crossbeam_channel::TryRecvError::Disconnected)
        );
        assert_eq!(
            self.handle.send(Command::Stop { key: SequenceKey(1) }),
            Err(SendError::Down)
        );
    }
}

/// A sequence with blocks for all it may need (but not more than 60), from block `60 * key`.
fn with_blocks(key: u64, tokens: usize, max_new: u32) -> SequenceSpec {
    let mut spec = spec(key, &prompt(u32::try_from(key).unwrap(), tokens), max_new);
    let count = u32::try_from(tokens)
        .unwrap()
        .saturating_add(max_new)
        .div_ceil(16)
        .min(60);
    let first = u32::try_from(key).unwrap() * 60;
    spec.blocks = (first..first + count).collect();
    spec
}

fn reports(events: &[EngineEvent]) -> impl Iterator<Item = &StepReport> {
    events.iter().filter_map(|event| {
        if let EngineEvent::Step(report) = event {
            Some(report)
        } else {
            None
        }
    })
}

/// Steps that were given up.
fn abandoned(events: &[EngineEvent]) -> usize {
    let empty = |report: &&StepReport| report.batch == 0 && report.wants.is_empty();
    reports(events).filter(empty).count()
}

/// The tokens sampled for a sequence.
fn answer(events: &[EngineEvent], key: u64) -> Vec<Token> {
    let tokens = reports(events).flat_map(|report| &report.tokens);
    tokens
        .filter(|token| token.key.0 == key)
        .map(|token| token.token)
        .collect()
}

fn has_left(key: u64) -> impl Fn(&EngineEvent) -> bool {
    move |event| match event {
        EngineEvent::Step(report) => report.tokens.iter().any(|token| token.key.0 == key && token.left),
        _ => false,
    }
}

fn is_down(event: &EngineEvent) -> bool {
    matches!(event, EngineEvent::Down { .. })
}

#[test]
fn runs_a_sequence_to_its_end_then_idles_and_runs_another() {
    let running = simple();
    for key in [1, 2] {
        running.send(Command::Start(with_blocks(key, 20, 9)));
        let events = running.until(has_left(key));
        let last = reports(&events).flat_map(|report| &report.tokens).last().unwrap();
        assert_eq!(last.finish, Some(FinishReason::Length));
        let expected = alone(
            &MockConfig::default(),
            spec(key, &prompt(u32::try_from(key).unwrap(), 20), 9),
        );
        assert_eq!(answer(&events, key), expected);
    }
    running.handle.shutdown(PATIENCE).unwrap();
    assert_eq!(
        running.next(),
        EngineEvent::Down {
            why: DownReason::Shutdown
        }
    );
    running.check_over();
}

#[test]
fn a_stop_is_always_answered() {
    let running = simple();
    running.send(Command::Stop { key: SequenceKey(77) });
    assert_eq!(running.next(), EngineEvent::Stopped { key: SequenceKey(77) });
    running.send(Command::Start(with_blocks(1, 20, 1500)));
    running.until(|event| matches!(event, EngineEvent::Step(_)));
    running.send(Command::Stop { key: SequenceKey(1) });
    running.until(|event| *event == EngineEvent::Stopped { key: SequenceKey(1) });
    running.send(Command::Start(with_blocks(2, 20, 3)));
    let later = running.until(has_left(2));
    assert!(reports(&later).all(|report| report.computed.iter().all(|(key, _)| key.0 == 2)));
}

#[test]
fn a_refusal_says_why() {
    let running = simple();
    let mut wrong = with_blocks(1, 20, 3);
    wrong.blocks.push(9999);
    running.send(Command::Start(wrong));
    let why = Refusal::UnknownBlock {
        block: 9999,
        blocks: 256,
    };
    assert_eq!(
        running.next(),
        EngineEvent::Refused {
            key: SequenceKey(1),
            why
        }
    );
}

#[test]
fn a_sequence_without_blocks_asks_and_waits() {
    let running = simple();
    let mut starved = with_blocks(1, 20, 3);
    let blocks = std::mem::take(&mut starved.blocks);
    running.send(Command::Start(starved));
    let EngineEvent::Step(report) = running.next() else {
        panic!("a report of wants")
    };
    assert_eq!((report.batch, report.wants), (0, vec![(SequenceKey(1), 2)]));
    running.send(Command::Grow {
        key: SequenceKey(1),
        blocks,
    });
    let events = running.until(has_left(1));
    assert_eq!(reports(&events).flat_map(|report| &report.tokens).count(), 3);
}

/// The engine fails at its second step: one `Down`, with the reason, and no answer after it.
#[track_caller]
fn check_down(faults: Faults, why: DownReason) {
    let config = MockConfig {
        faults,
        ..MockConfig::default()
    };
    let running = start(config, EngineConfig::default(), no_sleep());
    running.send(Command::Start(with_blocks(1, 20, 9)));
    let events = running.until(is_down);
    assert_eq!(reports(&events).count(), 1);
    assert_eq!(events.last(), Some(&EngineEvent::Down { why }));
    running.check_over();
}

#[test]
fn a_failing_step_ends_the_engine() {
    let why = DownReason::Backend("backend: a mock's scripted failure".into());
    check_down(
        Faults {
            fail_at_step: Some(2),
            ..Faults::default()
        },
        why,
    );
}

#[test]
fn a_panicking_step_ends_the_engine_and_nothing_else() {
    let why = DownReason::Panic("a mock's scripted panic".into());
    check_down(
        Faults {
            panic_at_step: Some(2),
            ..Faults::default()
        },
        why,
    );
}

#[test]
fn a_panicking_sink_ends_the_engine() {
    let backend = MockBackend::new(MockConfig::default(), no_sleep()).unwrap();
    let sink = Arc::new(|_| panic!("the sink"));
    let handle = engine::start(Box::new(backend), EngineConfig::default(), sink).unwrap();
    handle.send(Command::Stop { key: SequenceKey(1) }).unwrap();
    assert_eq!(handle.shutdown(PATIENCE), Ok(()));
    assert_eq!(
        handle.send(Command::Stop { key: SequenceKey(1) }),
        Err(SendError::Down)
    );
}

#[test]
fn a_backend_that_panics_when_dropped_is_no_second_panic() {
    // Were it dropped while the sink's panic unwinds, the process would end.
    struct Fragile(MockBackend);
    impl Backend for Fragile {
        fn spec(&self) -> &engine::ModelSpec {
            self.0.spec()
        }
        fn pool(&self) -> Arc<engine::KvPool> {
            self.0.pool()
        }
        fn step(&mut self, batch: &[Slice<'_>], out: &mut Vec<Sampled>) -> Result<(), BackendError> {
            self.0.step(batch, out)
        }
    }
    impl Drop for Fragile {
        fn drop(&mut self) {
            panic!("the backend's end");
        }
    }
    let backend = Fragile(MockBackend::new(MockConfig::default(), no_sleep()).unwrap());
    let (down, told) = bounded(1);
    let sink = Arc::new(move |event| match event {
        EngineEvent::Down { why } => down.send(why).unwrap(),
        _ => panic!("the sink"),
    });
    let handle = engine::start(Box::new(backend), EngineConfig::default(), sink).unwrap();
    handle.send(Command::Stop { key: SequenceKey(1) }).unwrap();
    assert_eq!(
        told.recv_timeout(PATIENCE),
        Ok(DownReason::Panic("the sink".into()))
    );
    assert_eq!(handle.shutdown(PATIENCE), Ok(()));
}

#[test]
fn dropping_the_handle_ends_the_engine() {
    let Running { handle, events } = simple();
    handle.send(Command::Start(with_blocks(1, 20, 1500))).unwrap();
    drop(handle);
    let deadline = std::time::Instant::now() + PATIENCE;
    while events.recv_deadline(deadline).unwrap()
        != (EngineEvent::Down {
            why: DownReason::Shutdown,
        })
    {}
    assert!(events.recv_timeout(PATIENCE).is_err(), "nothing after Down");
}

/// An engine that stands still in its first step until the sender is used or dropped.
fn held(command_queue: u32) -> (Running, Sender<()>, Receiver<()>) {
    let (release, gate) = bounded::<()>(1);
    let (entered, in_step) = bounded(1);
    let sleep: Sleep = Arc::new(move |_| {
        let _ = entered.try_send(());
        let _ = gate.recv();
    });
    let config = EngineConfig {
        command_queue,
        ..EngineConfig::default()
    };
    (start(MockConfig::default(), config, sleep), release, in_step)
}

#[test]
fn a_step_that_does_not_end_can_be_told() {
    let (running, release, in_step) = held(3);
    assert_eq!(running.handle.step_lasts(), Duration::ZERO);
    running.send(Command::Start(with_blocks(1, 20, 1)));
    in_step.recv_timeout(PATIENCE).unwrap();
    let before = running.handle.step_lasts();
    std::thread::sleep(Duration::from_millis(1));
    assert!(running.handle.step_lasts() > before);
    drop(release);
    running.until(has_left(1));
    assert_eq!(running.handle.step_lasts(), Duration::ZERO);
}

#[test]
fn the_queue_is_bounded_and_a_full_one_does_not_stop_a_shutdown() {
    let (running, release, in_step) = held(3);
    running.send(Command::Start(with_blocks(1, 20, 9)));
    in_step.recv_timeout(PATIENCE).unwrap();
    for key in 10..13 {
        running.send(Command::Stop {
            key: SequenceKey(key),
        });
    }
    assert_eq!(
        running.handle.send(Command::Stop { key: SequenceKey(13) }),
        Err(SendError::Full)
    );
    assert!(
        running.handle.shutdown(Duration::ZERO).is_err(),
        "it is in a step"
    );
    drop(release);
    let events = running.until(is_down);
    assert_eq!(
        (reports(&events).count(), abandoned(&events)),
        (1, 1),
        "the step that ran was its last, and cut short"
    );
    running.check_over();
}

/// Sequences 1, 2, ... with these prompts are in one step, which is a chunk of each at most, and some are stopped meanwhile: whether the
/// step is abandoned, and that the others answer as if nothing had happened.
#[track_caller]
fn check_abandoned(prompts: &[usize], stopped: &[u64], expected: bool) {
    let (running, release, in_step) = held(16);
    // Holds the engine in a first step of its own, so that all the others are in the second.
    running.send(Command::Start(with_blocks(0, 1, 40)));
    in_step.recv_timeout(PATIENCE).unwrap();
    for (key, &tokens) in (1..).zip(prompts) {
        running.send(Command::Start(with_blocks(key, tokens, 9)));
    }
    release.send(()).unwrap();
    in_step.recv_timeout(PATIENCE).unwrap();
    for &key in stopped {
        running.send(Command::Stop {
            key: SequenceKey(key),
        });
    }
    drop(release);
    let events = running.until(has_left(0));
    assert_eq!(
        abandoned(&events),
        usize::from(expected),
        "{prompts:?} {stopped:?}"
    );
    for (key, &tokens) in (1..).zip(prompts) {
        let answer = answer(&events, key);
        if stopped.contains(&key) {
            assert!(events.contains(&EngineEvent::Stopped {
                key: SequenceKey(key)
            }));
            assert!(answer.len() <= 1, "it went on: {answer:?}");
        } else {
            let prompt = prompt(u32::try_from(key).unwrap(), tokens);
            assert_eq!(
                answer,
                alone(&MockConfig::default(), spec(key, &prompt, 9)),
                "sequence {key}"
            );
        }
    }
}

#[test]
fn a_step_is_abandoned_when_half_of_it_is_not_wanted_any_more() {
    check_abandoned(&[300, 100], &[1], true);
    check_abandoned(&[300, 100], &[2], false);
    check_abandoned(&[100, 100, 100], &[1], false);
    check_abandoned(&[100, 100, 100], &[1, 3], true);
    check_abandoned(&[100, 100], &[7], false);
}

#[test]
fn a_storm_of_aborts_does_not_hold_up_whoever_stays() {
    // In every single step a long prompt begins that is stopped before the step has ended.
    let (running, release, in_step) = held(16);
    running.send(Command::Start(with_blocks(0, 20, 40)));
    in_step.recv_timeout(PATIENCE).unwrap();
    for key in 1..=30 {
        let mut prompt = with_blocks(key % 3 + 1, 300, 9);
        prompt.key = SequenceKey(key);
        running.send(Command::Start(prompt));
        release.send(()).unwrap();
        in_step.recv_timeout(PATIENCE).unwrap();
        running.send(Command::Stop {
            key: SequenceKey(key),
        });
    }
    // The engine stands in the step of the last prompt: what has been said by now was said under the storm.
    let events: Vec<_> = running.events.try_iter().collect();
    let answer = answer(&events, 0);
    assert!(abandoned(&events) >= 10, "work that nobody wants is not done");
    assert!(answer.len() >= 15, "only {} tokens in 30 steps", answer.len());
    let expected = alone(&MockConfig::default(), spec(0, &prompt(0, 20), 40));
    assert!(expected.starts_with(&answer), "{answer:?}");
    drop(release);
    running.until(has_left(0));
}

#[test]
fn a_stop_before_its_step_begins_is_not_missed() {
    // The stop is queued while another step runs, and applied before the next is planned: nothing is left to abandon.
    let (running, release, in_step) = held(16);
    running.send(Command::Start(with_blocks(0, 1, 5)));
    in_step.recv_timeout(PATIENCE).unwrap();
    running.send(Command::Start(with_blocks(1, 300, 9)));
    running.send(Command::Stop { key: SequenceKey(1) });
    drop(release);
    let events = running.until(has_left(0));
    assert_eq!(abandoned(&events), 0);
    assert!(
        reports(&events).all(|report| report.step_tokens <= 1),
        "{events:?}"
    );
}
