//! Several streams that are open at a time, slow enough that a fault finds them so.

use serde_json::Value;
use tokio::task::JoinSet;

use super::ctx::Ctx;
use super::guests::slowly;
use super::load::Guest;
use crate::admin::Room;
use crate::stream::Answer;

/// Tokens of each; and those that each has when they are all open.
const TOKENS: u32 = 32;
const AT_FAULT: usize = 3;
/// A step that leaves time to open all of them before the first is at its end.
const STEP_MS: u64 = 200;

/// Streams with their requests.
pub(crate) struct Streams(Vec<(Value, Guest)>);

impl Streams {
    /// Slows decode down and opens them, all at a time.
    pub(crate) async fn open(ctx: &mut Ctx, count: usize) -> Self {
        slowly(ctx, STEP_MS).await;
        let to = ctx.cluster.ports().http;
        let mut opening = JoinSet::new();
        for index in 0..count {
            let request = ctx.request(5 * index, TOKENS);
            opening.spawn(async move {
                let guest = Guest::streams_from(to, &request, AT_FAULT).await;
                (request, guest)
            });
        }
        Self(opening.join_all().await)
    }

    /// The decode worker that has most of them, and how many.
    pub(crate) async fn busiest(&self, ctx: &Ctx) -> (String, usize) {
        let rooms = ctx.cluster.rooms().await;
        let there = |name: &str| {
            let at = |room: &&Room| room.held_by.iter().any(|held| held.worker == name);
            rooms
                .iter()
                .filter(|room| room.phase == "decoding")
                .filter(at)
                .count()
        };
        let counted = ["decode-0", "decode-1"].map(|name| (there(name), name));
        let (count, name) = counted.into_iter().max().unwrap_or_default();
        assert!(count > 0, "no stream is decoding: {rooms:#?}");
        (name.to_owned(), count)
    }

    /// The attempts that they are in.
    pub(crate) async fn generations(&self, ctx: &Ctx) -> Vec<(String, u32)> {
        let rooms = ctx.cluster.rooms().await;
        rooms
            .into_iter()
            .map(|room| (room.room, room.generation))
            .collect()
    }

    /// Reads all of them to their ends.
    pub(crate) async fn finish(self) -> Vec<(Value, Answer)> {
        let mut answers = Vec::new();
        for (request, guest) in self.0 {
            answers.push((request, guest.leaves().await));
        }
        answers
    }
}
