//! Clients: what they ask, how they behave, and all they see.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::{Sampling, Token};
use rand::Rng;
use room::{Outcome, RoomId};
use runtime::{Answer, AnswerEvent, GatewayHandle, Job, Refused};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::plan::Plan;
use crate::random::Random;
use crate::trace::Trace;

/// How a client behaves.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(crate) enum Manner {
    /// It reads to the end.
    Reads,
    /// It is gone after a while.
    Leaves(Duration),
    /// An operator aborts its first room after a while.
    Aborted(Duration),
    /// It finds a stop string in its first answer after so many tokens.
    Stops(usize),
    /// It waits so long between two looks.
    Slow(Duration),
    /// Its owner panics after a while.
    OwnerPanics(Duration),
}

/// How it came to an end for the client.
#[derive(Clone, Eq, PartialEq, Debug)]
pub(crate) enum End {
    /// It has not.
    Open,
    /// The stream of events ended.
    Whole,
    /// The client left.
    Left,
    /// The gateway died under it.
    GatewayDied,
    /// The gateway did not take it.
    Refused(Refused),
}

/// One answer as its client saw it.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnswerSeen {
    /// Its tokens.
    pub tokens: Vec<Token>,
    /// Its outcome, and when it came.
    pub outcome: Option<(Duration, Outcome)>,
    /// Events after the outcome.
    pub after_end: u32,
}

/// One request as its client saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// What was asked.
    pub job: Job,
    /// How the client behaved.
    pub manner: Manner,
    /// Which gateway it asked, by its place.
    pub gateway: usize,
    /// When.
    pub asked: Duration,
    /// Its rooms.
    pub rooms: Vec<RoomId>,
    /// Its answers, in the order of the rooms.
    pub answers: Vec<AnswerSeen>,
    /// When an operator's abort was taken, if one was.
    pub aborted: Option<Duration>,
    /// How it ended.
    pub end: End,
    /// When.
    pub ended: Duration,
}

/// All requests of a simulation, in the order in which they were asked. Cloning gives the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clients(Arc<Mutex<Vec<Seen>>>);

impl Clients {
    fn list(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All so far.
    #[must_use]
    pub(crate) fn all(&self) -> Vec<Seen> {
        self.list().clone()
    }

    /// Whether some are still waiting.
    #[must_use]
    pub(crate) fn any_open(&self) -> bool {
        self.list().iter().any(|seen| seen.end == End::Open)
    }

    fn update(&self, at: usize, change: impl FnOnce(&mut Seen)) {
        if let Some(seen) = self.list().get_mut(at) {
            change(seen);
        }
    }

    /// A client asks, on a task of its own, which ends with the request at the latest, or when `gateway_died` or `leave` says so.
    pub(crate) fn ask(&self, trace: &Trace, to: Asked, signals: Signals) {
        let seen = Seen {
            job: to.job.clone(),
            manner: to.manner,
            gateway: to.place,
            asked: trace.now(),
            rooms: Vec::new(),
            answers: Vec::new(),
            aborted: None,
            end: End::Open,
            ended: Duration::ZERO,
        };
        let at = {
            let mut list = self.list();
            list.push(seen);
            list.len() - 1
        };
        let client = Client {
            clients: self.clone(),
            at,
            trace: trace.clone(),
        };
        tokio::spawn(client.run(to, signals));
    }
}

/// A request, and who asks whom.
pub(crate) struct Asked {
    /// What.
    pub job: Job,
    /// How.
    pub manner: Manner,
    /// Whom.
    pub gateway: GatewayHandle,
    /// The gateway's place.
    pub place: usize,
}

/// What ends clients early.
pub(crate) struct Signals {
    /// The gateway's incarnation is gone.
    pub died: CancellationToken,
    /// Everybody leaves.
    pub exodus: CancellationToken,
}

struct Client {
    clients: Clients,
    at: usize,
    trace: Trace,
}

impl Client {
    async fn run(self, to: Asked, signals: Signals) {
        let end = tokio::select! {
            biased;
            () = signals.died.cancelled() => End::GatewayDied,
            () = signals.exodus.cancelled() => End::Left,
            end = self.ask(&to) => end,
        };
        debug!(client = self.at, ?end, "a client's end");
        let now = self.trace.now();
        self.clients.update(self.at, |seen| {
            seen.end = end;
            seen.ended = now;
        });
    }

    async fn ask(&self, to: &Asked) -> End {
        let mut answer = match to.gateway.submit(to.job.clone()).await {
            Ok(answer) => answer,
            Err(refused) => return End::Refused(refused),
        };
        self.clients.update(self.at, |seen| {
            seen.rooms = answer.rooms().to_vec();
            seen.answers = vec![AnswerSeen::default(); seen.rooms.len()];
        });
        match to.manner {
            Manner::Reads | Manner::Slow(_) | Manner::Stops(_) => self.read(&mut answer, to.manner).await,
            Manner::Leaves(after) => tokio::select! {
                biased;
                () = sleep(after) => End::Left,
                end = self.read(&mut answer, to.manner) => end,
            },
            Manner::Aborted(after) => {
                let room = answer.rooms().first().copied();
                tokio::select! {
                    biased;
                    () = sleep(after) => {}
                    end = self.read(&mut answer, to.manner) => return end,
                }
                if room.is_some_and(|room| to.gateway.abort(room)) {
                    let now = self.trace.now();
                    self.clients.update(self.at, |seen| seen.aborted = Some(now));
                }
                self.read(&mut answer, to.manner).await
            }
            Manner::OwnerPanics(after) => {
                tokio::select! {
                    biased;
                    () = sleep(after) => answer.poison(runtime::Poison::Panic),
                    end = self.read(&mut answer, to.manner) => return end,
                }
                self.read(&mut answer, to.manner).await
            }
        }
    }

    async fn read(&self, answer: &mut Answer, manner: Manner) -> End {
        while let Some(event) = answer.next().await {
            let now = self.trace.now();
            let (AnswerEvent::Tokens { index, .. } | AnswerEvent::Ended { index, .. }) = event;
            let mut read = 0;
            self.clients.update(self.at, |seen| {
                let Some(got) = seen.answers.get_mut(index) else {
                    return;
                };
                got.after_end += u32::from(got.outcome.is_some());
                match &event {
                    AnswerEvent::Tokens { tokens, .. } => {
                        got.tokens.extend(tokens.iter().map(|out| out.token));
                    }
                    AnswerEvent::Ended { outcome, .. } => got.outcome = Some((now, *outcome)),
                }
                read = got.tokens.len();
            });
            match &event {
                AnswerEvent::Tokens { tokens, .. } => {
                    debug!(
                        client = self.at,
                        index,
                        tokens = tokens.len(),
                        read,
                        "a client reads"
                    );
                }
                AnswerEvent::Ended { outcome, .. } => {
                    debug!(client = self.at, index, ?outcome, "a client's answer ends");
                }
            }
            match manner {
                Manner::Slow(pause) => sleep(pause).await,
                Manner::Stops(after) if index == 0 && read >= after => answer.stop_string_found(0),
                _ => {}
            }
        }
        End::Whole
    }
}

/// Prompts have beginnings in common, so that there is something to find in a cache.
const PREFIXES: u32 = 5;

/// A request of this plan, and how its client behaves.
pub(crate) fn request(plan: &Plan, number: u64, random: &mut Random) -> (Job, Manner) {
    let capacity = plan.mock.shape.blocks * u32::try_from(plan.mock.shape.block_tokens).unwrap_or(1);
    let longest = capacity * 2 / 3;
    let prompt_len = random.random_range(1..=(longest / 2).min(60));
    let prefix = random.random_range(0..PREFIXES);
    let shared = random.random_range(0..=prompt_len);
    let prompt = (0..prompt_len).map(|at| {
        if at < shared {
            1 + (prefix * 131 + at * 7) % (plan.mock.vocabulary - 1)
        } else {
            random.random_range(1..plan.mock.vocabulary)
        }
    });
    let prompt = prompt.collect();
    let n = match random.random_range(0..20) {
        0 => 4,
        1 | 2 => 2,
        _ => 1,
    };
    let seconds = match random.random_range(0..10) {
        0 => random.random_range(1..4),
        1 => random.random_range(4..15),
        _ => 60,
    };
    let job = Job {
        request_id: format!("r{number}"),
        prompt,
        n,
        max_new: random.random_range(1..=(longest - prompt_len).clamp(1, 60)),
        sampling: Sampling {
            temperature: if random.random_bool(0.5) { 0.8 } else { 0.0 },
            seed: random.random(),
            ..Sampling::default()
        },
        ignore_eos: random.random_bool(0.3),
        priority: random.random_range(0..3),
        share: room::Share::default(),
        salt: u64::from(random.random_bool(0.1)),
        timeout: Duration::from_secs(seconds),
        trace: None,
        prepared: runtime::Preparation::default(),
    };
    let mut soon = |most_ms: u64| Duration::from_millis(random.random_range(0..most_ms));
    let after = soon(2_000);
    let manner = match soon(100).as_millis() {
        0..20 => Manner::Leaves(after),
        20..26 => Manner::Aborted(after),
        26..30 => Manner::Stops(after.subsec_millis() as usize % 8 + 1),
        30..35 => Manner::Slow(after / 4),
        35..37 => Manner::OwnerPanics(after),
        _ => Manner::Reads,
    };
    (job, manner)
}
