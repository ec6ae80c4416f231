//! Several guests at a time, and what they may expect.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::ctx::Ctx;
use super::load::{Guest, same};
use crate::admin::Room;
use crate::stream::{Answer, answer};

/// A step that makes a short answer last some seconds.
const SLOW_STEP_MS: u64 = 100;
const TOKENS: u32 = 32;
/// How often a worker is tried until a guest is sent there.
const TRIES: usize = 40;

/// Guests with their requests.
pub(crate) struct Guests {
    all: Vec<(Value, Guest)>,
}

impl Guests {
    /// So many guests come; nobody waits for them yet.
    pub(crate) async fn arrive(ctx: &mut Ctx, count: usize) -> Self {
        let requests: Vec<Value> = (0..count).map(|_| ctx.request(30, TOKENS)).collect();
        let all = requests.into_iter().map(|request| {
            let guest = Guest::arrives(ctx, &request);
            (request, guest)
        });
        Self { all: all.collect() }
    }

    /// Guests that are all being served, slowly; at least one of them decodes at this worker.
    pub(crate) async fn at(ctx: &mut Ctx, worker: &str) -> Self {
        slowly(ctx, SLOW_STEP_MS).await;
        let mut all = Vec::new();
        for _ in 0..TRIES {
            let request = ctx.request(30, TOKENS);
            let guest = Guest::streams(ctx, &request, 2).await;
            all.push((request, guest));
            if all.len() > 1 && decodes_at(&ctx.cluster.rooms().await, worker) {
                return Self { all };
            }
        }
        panic!("nobody is sent to {worker}");
    }

    /// What they hear, to the end.
    pub(crate) async fn hear(self) -> Heard {
        let mut heard = Heard::default();
        for (request, guest) in self.all {
            heard.answers.push(guest.leaves().await);
            heard.requests.push(request);
        }
        heard
    }

    /// Their answers, which are whole and have the tokens of the undisturbed ones.
    pub(crate) async fn leave(self, ctx: &mut Ctx) -> Vec<Answer> {
        let heard = self.hear().await;
        heard.check(ctx).await;
        heard.answers
    }
}

/// Requests and their answers.
#[derive(Default)]
pub(crate) struct Heard {
    requests: Vec<Value>,
    pub(crate) answers: Vec<Answer>,
}

impl Heard {
    /// They are whole, and have the tokens of undisturbed ones.
    pub(crate) async fn check(&self, ctx: &mut Ctx) {
        slowly(ctx, 0).await;
        for (request, answer) in self.requests.iter().zip(&self.answers) {
            let expected = ctx.reference(request).await;
            same(&expected, answer);
        }
    }
}

impl Ctx {
    /// The whole answer to a request.
    pub(crate) async fn ask(&self, request: &Value) -> Answer {
        answer(self.cluster.ports().http, request).await
    }
}

/// Whether a room is decoding at a worker.
fn decodes_at(rooms: &[Room], worker: &str) -> bool {
    let there = |room: &Room| room.held_by.iter().any(|held| held.worker == worker);
    rooms.iter().any(|room| room.phase == "decoding" && there(room))
}

/// Steps of decode take so much longer, at whoever runs.
pub(crate) async fn slowly(ctx: &Ctx, step_ms: u64) {
    for name in ctx
        .cluster
        .names()
        .iter()
        .filter(|name| name.starts_with("decode"))
    {
        ctx.fault(name, json!({ "engine": { "step_ms": step_ms } })).await;
    }
}

/// Waits until the worker is linked and a whole answer came from it: it is used as before.
pub(crate) async fn serves_again(ctx: &mut Ctx, worker: &str) {
    ctx.cluster.ready(ctx.workers).await;
    ctx.fault(worker, json!({ "engine": { "step_ms": 20 } })).await;
    for _ in 0..TRIES {
        let mut asked = JoinSet::new();
        for _ in 0..3 {
            let (to, request) = (ctx.cluster.ports().http, ctx.request(4, 8));
            asked.spawn(async move { answer(to, &request).await });
        }
        let mut seen = false;
        while !asked.is_empty() {
            seen |= decodes_at(&ctx.cluster.rooms().await, worker);
            while let Some(answer) = asked.try_join_next() {
                super::load::whole(&answer.expect("a guest does not panic"));
            }
        }
        if seen {
            ctx.fault(worker, json!({ "engine": { "step_ms": 0 } })).await;
            return;
        }
    }
    panic!("{worker} is linked, and nobody is sent there");
}
