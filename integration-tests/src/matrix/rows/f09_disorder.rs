//! F09: messages are repeated, delayed, and overtaken by others; those of an attempt that is over arrive in the next one. Nothing comes
//! of it but a count. (What is left of an earlier incarnation cannot arrive at all: it was on a link that is over.)

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::{Guest, same};
use crate::matrix::setup::TWO;
use crate::stream::Answer;

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F09.repeated",
        what: "every frame of every room is sent twice, both ways: eight answers with the right tokens",
        setup: &TWO,
        bound: Bound::ms(15_000, 16_000),
        run: |ctx| Box::pin(disorder(ctx, false)),
    },
    Cell {
        id: "F09.overtaken",
        what: "every link is late by a time of its own, up to 400 ms, so that what one says overtakes what another said: eight answers with the right tokens",
        setup: &TWO,
        bound: Bound::ms(30_000, 31_000),
        run: |ctx| Box::pin(disorder(ctx, true)),
    },
    Cell {
        id: "F09.old-generation",
        what: "grants arrive when their attempt is over and the next one is under way: no effect but a count",
        setup: &TWO,
        bound: Bound::ms(12_000, 14_000),
        run: |ctx| Box::pin(old_generation(ctx)),
    },
];

/// Whatever is said of a room, by gateways and by workers; the digests come last.
const TO_WORKERS: [&str; 6] = ["reserve", "prefill", "pull", "release", "close", "heartbeat"];
const TO_GATEWAYS: [&str; 9] = [
    "reserved",
    "refused",
    "progress",
    "tokens",
    "published",
    "pulled",
    "failed",
    "closed",
    "heartbeat_ack",
];

/// Sets what all links do. A link is one ordered stream, so within one nothing overtakes; and a digest is not said twice.
async fn disturb(ctx: &Ctx, late: bool) {
    for (index, name) in ctx.cluster.names().into_iter().enumerate() {
        let kinds = if name == "gateway-0" {
            &TO_WORKERS[..]
        } else {
            &TO_GATEWAYS
        };
        let (kinds, does) = match late {
            true => (kinds, json!({ "delay_ms": index * 100 })),
            false => (&kinds[..kinds.len() - 1], json!("duplicate")),
        };
        for kind in kinds {
            ctx.fault(&name, json!({ "frames": { *kind: does } })).await;
        }
    }
}

async fn disorder(ctx: &mut Ctx, late: bool) -> Measured {
    disturb(ctx, late).await;
    let requests: Vec<Value> = (0..8).map(|index| ctx.request(10 * index, 8)).collect();
    ctx.injected();
    let guests: Vec<Guest> = requests
        .iter()
        .map(|request| Guest::arrives(ctx, request))
        .collect();
    let mut answers = Vec::new();
    for guest in guests {
        answers.push(guest.leaves().await);
    }
    let client = ctx.since();
    let back = ctx.back(ctx.workers).await;
    for name in ctx.cluster.names() {
        ctx.calm(&name).await;
    }
    let answers: Vec<(Value, Answer)> = requests.into_iter().zip(answers).collect();
    ctx.check_same(&answers).await;
    Measured::new(client, back)
}

async fn old_generation(ctx: &mut Ctx) -> Measured {
    let stale = ctx.metric("innkeeper_stale_inputs_total", "").await;
    // Longer than the phase's deadline of 2 s.
    for name in ["decode-0", "decode-1"] {
        ctx.fault(name, json!({ "frames": { "reserved": { "delay_ms": 2_600 } } }))
            .await;
    }
    let request = ctx.request(20, 40);
    ctx.injected();
    let guest = Guest::arrives(ctx, &request);
    sleep(Duration::from_millis(2_200)).await;
    for name in ["decode-0", "decode-1"] {
        ctx.fault(name, json!({ "frames": { "reserved": "pass" } })).await;
    }
    let answer = guest.leaves().await;
    let client = ctx.since();
    let back = ctx.back(ctx.workers).await;
    let counted = ctx.metric("innkeeper_stale_inputs_total", "").await;
    assert!(counted > stale, "no grant was stale");
    let expected = ctx.reference(&request).await;
    same(&expected, &answer);
    Measured::new(client, back)
}
