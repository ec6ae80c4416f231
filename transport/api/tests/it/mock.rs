//! A mock of the service behind the door: plays what a test's script says, and counts what is under way.

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::{
    Event, Events, Failure, FailureKind, FinishReason, GenerateRequest, Generation, ModelCard, Readiness,
    Submit, SubmitError, TokenLogprob, TopLogprob,
};
use futures_util::future::BoxFuture;
use futures_util::stream::poll_fn;
use tokio::sync::{mpsc, watch};

/// A test that waits longer than this hangs.
const HANG: Duration = Duration::from_secs(30);

/// How the mock answers one request.
pub enum Act {
    /// Refuses it.
    Refuse(SubmitError),
    /// Never says anything.
    Ponder,
    /// Sends these events, then closes the channel.
    Play(Box<dyn Iterator<Item = Event> + Send>),
    /// Sends these events, then nothing more.
    Hang(Vec<Event>),
    /// Hands over what the test itself sends.
    Relay(mpsc::Receiver<Event>),
    /// Panics.
    Panic,
}

impl Act {
    pub fn play(events: Vec<Event>) -> Self {
        Self::Play(Box::new(events.into_iter()))
    }
}

/// The scripted service.
pub struct MockSubmit {
    script: Box<dyn Fn(&GenerateRequest) -> Act + Send + Sync>,
    /// Requests and generations that have not been dropped.
    open: Arc<watch::Sender<usize>>,
    /// Events the door has made room for.
    pub sent: Arc<AtomicUsize>,
    pub seen: Mutex<Vec<GenerateRequest>>,
    pub readiness: Mutex<Readiness>,
}

struct Place(Arc<watch::Sender<usize>>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

impl MockSubmit {
    pub fn new(script: impl Fn(&GenerateRequest) -> Act + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            script: Box::new(script),
            open: Arc::new(watch::Sender::new(0)),
            sent: Arc::default(),
            seen: Mutex::default(),
            readiness: Mutex::new(Readiness::Ready),
        })
    }

    /// Waits until so many requests are open, but not for ever.
    pub async fn until_open(&self, wanted: usize) {
        let mut open = self.open.subscribe();
        let waited = tokio::time::timeout(HANG, open.wait_for(|open| *open == wanted)).await;
        assert!(
            waited.is_ok(),
            "{} requests stayed open, expected {wanted}",
            *self.open.borrow()
        );
    }
}

impl Submit for MockSubmit {
    fn models(&self) -> Vec<ModelCard> {
        let card = |id: &str| ModelCard {
            id: id.to_owned(),
            created_s: 1_700_000_000,
            context_tokens: 8192,
        };
        vec![card("m"), card("org/name")]
    }

    fn ready(&self) -> Readiness {
        self.readiness.lock().unwrap().clone()
    }

    fn submit(&self, request: GenerateRequest) -> BoxFuture<'_, Result<Generation, SubmitError>> {
        Box::pin(async move {
            let act = (self.script)(&request);
            let rooms = (0..request.n).map(|index| format!("room-{index}")).collect();
            // As a service that makes no span of its own.
            let traceparent = request.traceparent.clone();
            self.seen.lock().unwrap().push(request);
            self.open.send_modify(|open| *open += 1);
            let place = Place(Arc::clone(&self.open));
            let (events, hang): (Box<dyn Iterator<Item = Event> + Send>, bool) = match act {
                Act::Refuse(error) => return Err(error),
                Act::Ponder => pending().await,
                Act::Relay(events) => return Ok(generation(rooms, events)),
                Act::Panic => panic!("scripted"),
                Act::Play(events) => (events, false),
                Act::Hang(events) => (Box::new(events.into_iter()), true),
            };
            let (sender, receiver) = mpsc::channel(4);
            let sent = Arc::clone(&self.sent);
            // Ends when its events are sent or nobody takes them.
            tokio::spawn(async move {
                let _place = place;
                for event in events {
                    if sender.send(event).await.is_err() {
                        return;
                    }
                    sent.fetch_add(1, Ordering::SeqCst);
                }
                if hang {
                    sender.closed().await;
                }
            });
            Ok(Generation {
                room_ids: rooms,
                traceparent,
                prompt_tokens: 7,
                events: stream(receiver),
            })
        })
    }
}

fn generation(room_ids: Vec<String>, events: mpsc::Receiver<Event>) -> Generation {
    Generation {
        room_ids,
        traceparent: None,
        prompt_tokens: 7,
        events: stream(events),
    }
}

/// What comes through a channel.
fn stream(mut events: mpsc::Receiver<Event>) -> Events {
    Box::pin(poll_fn(move |cx| events.poll_recv(cx)))
}

pub fn text(index: u32, text: &str) -> Event {
    Event::Text {
        index,
        text: text.to_owned(),
        logprobs: Vec::new(),
    }
}

pub fn token(index: u32, text: &str, logprob: f32) -> Event {
    let top = TopLogprob {
        token: text.to_owned(),
        bytes: text.as_bytes().to_vec(),
        logprob,
    };
    let other = TopLogprob {
        token: "?".to_owned(),
        bytes: vec![0xff],
        logprob: f32::NEG_INFINITY,
    };
    let one = TokenLogprob {
        token: text.to_owned(),
        bytes: text.as_bytes().to_vec(),
        logprob,
        top: vec![top, other],
    };
    Event::Text {
        index,
        text: text.to_owned(),
        logprobs: vec![one],
    }
}

pub fn done(index: u32) -> Event {
    Event::Done {
        index,
        finish: FinishReason::Stop,
        completion_tokens: 2,
        cached_tokens: 5,
    }
}

pub fn failed(kind: FailureKind) -> Event {
    let failure = Failure {
        kind,
        message: "it broke".to_owned(),
        phase: Some("decoding".to_owned()),
    };
    Event::Failed { index: 0, failure }
}

/// Says hello, once a continuation.
pub fn hello(request: &GenerateRequest) -> Act {
    let each = |index| [text(index, "hel"), text(index, "lo"), done(index)];
    Act::play((0..request.n).flat_map(each).collect())
}
