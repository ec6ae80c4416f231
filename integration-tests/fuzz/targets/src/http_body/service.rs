//! The service behind the door, which does as it is told.

use std::sync::Mutex;
use std::time::Duration;

use api::{
    Event, Failure, FailureKind, FinishReason, GenerateRequest, Generation, ModelCard, Readiness, Submit,
    SubmitError, TokenLogprob, TopLogprob,
};
use futures_util::future::BoxFuture;
use futures_util::stream;

/// What the service does with every request.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(super) enum Act {
    /// Answers.
    Answer,
    /// Answers the beginning, and then fails.
    Fail,
    /// Fails at once.
    FailFirst,
    /// Answers the beginning, and is gone.
    Vanish,
    /// Takes no request.
    Refuse,
}

impl Act {
    pub(super) fn of(byte: u8) -> Self {
        match byte % 8 {
            0 => Self::Fail,
            1 => Self::FailFirst,
            2 => Self::Vanish,
            3 => Self::Refuse,
            _ => Self::Answer,
        }
    }

    /// Whether an error may come from the service.
    pub(super) fn refuses(self) -> bool {
        self != Self::Answer
    }
}

/// Says the same to everybody, and notes what it was asked.
pub(super) struct Scripted {
    pub(super) act: Act,
    pub(super) seen: Mutex<Vec<GenerateRequest>>,
}

impl Submit for Scripted {
    fn models(&self) -> Vec<ModelCard> {
        Vec::new()
    }

    fn ready(&self) -> Readiness {
        Readiness::Ready
    }

    fn submit(&self, request: GenerateRequest) -> BoxFuture<'_, Result<Generation, SubmitError>> {
        let events: Vec<Event> = (0..request.n)
            .flat_map(|index| self.events(index, &request))
            .collect();
        let room_ids = (0..request.n).map(|index| format!("room-{index}")).collect();
        let retry_after = Duration::from_millis(1);
        self.seen.lock().unwrap().push(request);
        let refused = (self.act == Act::Refuse).then(|| SubmitError::Overloaded {
            message: "full".to_owned(),
            retry_after,
        });
        Box::pin(async move {
            if let Some(error) = refused {
                return Err(error);
            }
            Ok(Generation {
                room_ids,
                traceparent: None,
                prompt_tokens: 7,
                events: Box::pin(stream::iter(events)),
            })
        })
    }
}

impl Scripted {
    fn events(&self, index: u32, request: &GenerateRequest) -> Vec<Event> {
        let logprobs = request.logprobs.map(|top| logprobs(usize::from(top)));
        let text = Event::Text {
            index,
            text: "héllo\n\n data: [DONE]".to_owned(),
            logprobs: logprobs.into_iter().collect(),
        };
        let failed = Event::Failed {
            index,
            failure: Failure {
                kind: FailureKind::Internal,
                message: "it broke".to_owned(),
                phase: None,
            },
        };
        let done = Event::Done {
            index,
            finish: FinishReason::Length,
            completion_tokens: 1,
            cached_tokens: 0,
        };
        match self.act {
            Act::Answer => vec![text, done],
            Act::Fail => vec![text, failed],
            Act::FailFirst => vec![failed],
            Act::Vanish => vec![text],
            Act::Refuse => Vec::new(),
        }
    }
}

fn logprobs(top: usize) -> TokenLogprob {
    let other = TopLogprob {
        token: "\u{fffd}".to_owned(),
        bytes: vec![0xff],
        logprob: f32::NEG_INFINITY,
    };
    TokenLogprob {
        token: "héllo".to_owned(),
        bytes: "héllo".as_bytes().to_vec(),
        logprob: -0.5,
        top: vec![other; top],
    }
}
