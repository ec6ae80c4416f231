//! F23: prompts as long as the context allows, and one token more.

use serde_json::{Value, json};

use crate::cluster::MODEL;
use crate::http::post;
use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::setup::{Setup, TWO, apart};

/// The model's context; a prompt must leave room for one token.
const CONTEXT: usize = 8_192;

/// Whoever computes a whole context has all cores for it, and chunks as by default.
static LONG: Setup = Setup {
    name: "1 prefill, 1 decode, all cores, tcp",
    start: || {
        let sets = [
            "ucx.tls=tcp",
            "worker.threads=0",
            "limits.prefill_stall_ms=20000",
            "limits.request_ms=280000",
        ];
        Box::pin(async move { apart(1, 1, &sets).await })
    },
};

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F23.longest",
        what: "prompts of limit - 1 and limit tokens are served",
        setup: &LONG,
        // What the model takes to compute one of them: the other begins with it.
        bound: Bound::ms(200_000, 200_000),
        run: |ctx| Box::pin(longest(ctx)),
    },
    Cell {
        id: "F23.too-long",
        what: "prompts of limit + 1 tokens and of 3 MB of text are refused (400 or 413), before any room exists",
        setup: &TWO,
        bound: Bound::ms(500, 1_000),
        run: |ctx| Box::pin(too_long(ctx)),
    },
];

/// Tokens of a prompt that is unlike any other from its first token on.
fn tokens(ctx: &mut Ctx) -> impl Iterator<Item = usize> + Clone + use<> {
    let beginning = ctx
        .fresh()
        .bytes()
        .fold(7usize, |hash, byte| hash * 31 % 9_973 + usize::from(byte));
    (0..).map(move |i| 1_000 + (beginning + i * 13) % 9_973)
}

fn prompt(of: impl Iterator<Item = usize>, tokens: usize) -> Value {
    let list: Vec<usize> = of.take(tokens).collect();
    json!({ "model": MODEL, "prompt": list, "max_tokens": 4, "temperature": 0, "ignore_eos": true })
}

async fn ask(ctx: &Ctx, request: &Value) -> (u16, Value) {
    let response = post(ctx.cluster.ports().http, "/v1/completions", request)
        .await
        .unwrap();
    let status = response.status;
    let body = response.text().await.unwrap();
    (status, serde_json::from_str(&body).unwrap_or_default())
}

async fn longest(ctx: &mut Ctx) -> Measured {
    ctx.injected();
    let text = tokens(ctx);
    for tokens in [CONTEXT - 2, CONTEXT - 1] {
        let request = prompt(text.clone(), tokens);
        let (status, body) = ask(ctx, &request).await;
        assert_eq!(status, 200, "{body}");
        let usage = &body["usage"];
        assert_eq!(usage["prompt_tokens"], tokens);
        // As many as the context has room for.
        assert_eq!(usage["completion_tokens"], CONTEXT - tokens, "{body}");
    }
    let client = ctx.since();
    let back = ctx.back(ctx.workers).await;
    Measured::new(client, back)
}

async fn too_long(ctx: &mut Ctx) -> Measured {
    let opened = ctx.metric("innkeeper_rooms_opened_total", "").await;
    let by_tokens = prompt(tokens(ctx), CONTEXT);
    let by_text = json!({ "model": MODEL, "prompt": "word ".repeat(600_000), "max_tokens": 4 });
    ctx.injected();
    for request in [by_tokens, by_text] {
        let (status, body) = ask(ctx, &request).await;
        assert!(matches!(status, 400 | 413), "{status}: {body}");
        let why = body["error"]["message"].as_str().unwrap_or_default();
        assert!(why.contains("8192"), "it says what would be right: {body}");
    }
    let client = ctx.since();
    assert_eq!(
        ctx.metric("innkeeper_rooms_opened_total", "").await,
        opened,
        "a room was opened"
    );
    let back = ctx.back(ctx.workers).await;
    Measured::new(client, back)
}
