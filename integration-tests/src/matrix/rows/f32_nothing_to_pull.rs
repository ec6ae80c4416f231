//! F32: decode has every block of the prompt already.

use serde_json::{Value, json};

use crate::cluster::MODEL;
use crate::http::post;
use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::setup::SMALL;

pub(super) const CELLS: &[Cell] = &[Cell {
    id: "F32.zero-blocks",
    what: "a prompt of whole blocks that decode has all of: nothing is moved, the same answer comes",
    setup: &SMALL,
    bound: Bound::ms(1_000, 2_000),
    run: |ctx| Box::pin(nothing(ctx)),
}];

const BLOCK: usize = 16;

async fn nothing(ctx: &mut Ctx) -> Measured {
    let first = ctx
        .fresh()
        .bytes()
        .fold(0usize, |sum, byte| sum * 31 % 9_973 + usize::from(byte));
    let prompt: Vec<usize> = (0..4 * BLOCK).map(|i| 1_000 + (first + 17 * i) % 9_973).collect();
    let request = json!({
        "model": MODEL, "prompt": prompt, "max_tokens": 8, "temperature": 0, "ignore_eos": true,
    });
    let expected = text(ctx, &request).await;
    ctx.cluster.all_back(ctx.workers).await;
    let moved = moved(ctx).await;
    ctx.injected();
    let again = text(ctx, &request).await;
    let client = ctx.since();
    assert_eq!(again, expected);
    let back = ctx.back(ctx.workers).await;
    let more = self::moved(ctx).await - moved;
    assert_eq!(more, 0.0, "bytes were moved that decode had");
    Measured::new(client, back)
}

async fn text(ctx: &Ctx, request: &Value) -> String {
    let response = post(ctx.cluster.ports().http, "/v1/completions", request)
        .await
        .unwrap();
    let (status, body) = (response.status, response.text().await.unwrap());
    assert_eq!(status, 200, "{body}");
    let body: Value = serde_json::from_str(&body).unwrap();
    body["choices"][0]["text"].as_str().expect("a text").to_owned()
}

async fn moved(ctx: &Ctx) -> f64 {
    ctx.metric("innkeeper_kv_pulled_bytes_total", "").await
}
