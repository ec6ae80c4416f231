//! F08: many requests of eight answers each. No sibling shares a room, and every one ends.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::MODEL;
use crate::http::post;
use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::setup::TWO;

const REQUESTS: u32 = 64;
const SIBLINGS: usize = 8;
const TOKENS: u64 = 4;

pub(super) const CELLS: &[Cell] = &[Cell {
    id: "F08.n8x64",
    what: "64 requests of n = 8 at a time: 512 rooms, every sibling ends with an answer of its own",
    setup: &TWO,
    // The row has none: a machine of two cores computes them all in this time.
    bound: Bound::ms(100_000, 101_000),
    run: |ctx| Box::pin(siblings(ctx)),
}];

async fn siblings(ctx: &mut Ctx) -> Measured {
    let opened = ctx.metric("innkeeper_rooms_opened_total", "").await;
    let mut clients = JoinSet::new();
    ctx.injected();
    for seed in 0..REQUESTS {
        let request = json!({
            "model": MODEL, "prompt": ctx.fresh(), "n": SIBLINGS, "max_tokens": TOKENS, "temperature": 1.0, "seed": seed,
            "ignore_eos": true,
        });
        let to = ctx.cluster.ports().http;
        clients.spawn(async move {
            let response = post(to, "/v1/completions", &request).await.unwrap();
            let status = response.status;
            let body = response.text().await.unwrap();
            assert_eq!(status, 200, "{body}");
            body
        });
    }
    let bodies = clients.join_all().await;
    let client = ctx.since();
    for body in &bodies {
        let body: Value = serde_json::from_str(body).unwrap();
        let choices = body["choices"].as_array().unwrap();
        assert_eq!(choices.len(), SIBLINGS, "{body}");
        assert!(
            choices.iter().all(|choice| choice["finish_reason"] == "length"),
            "{body}"
        );
        assert_eq!(
            body["usage"]["completion_tokens"],
            TOKENS * SIBLINGS as u64,
            "{body}"
        );
        let first = &choices[0]["text"];
        assert!(
            choices.iter().any(|choice| choice["text"] != *first),
            "they are all alike: {body}"
        );
    }
    let back = ctx.back(ctx.workers).await;
    let rooms = ctx.metric("innkeeper_rooms_opened_total", "").await - opened;
    assert_eq!(rooms, f64::from(REQUESTS) * SIBLINGS as f64, "one room a sibling");
    Measured::new(client, back)
}
