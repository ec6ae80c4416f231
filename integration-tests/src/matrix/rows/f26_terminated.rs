//! F26: SIGTERM in each phase. The process takes nothing new, finishes or hands over what it has, and ends with 0 within its grace.

use std::time::{Duration, Instant};

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::{Guest, same};
use crate::matrix::phases::{Phase, hold, let_go};
use crate::matrix::setup::TWO;
use crate::process::Signal;

/// The grace of the clusters here is 3 s, and what is handed over is computed anew. Blocks: the process has ended with 0, all back.
const BOUND: Bound = Bound::ms(6_000, 8_000);

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F26.prefill-prefilling",
        what: "SIGTERM to prefill while it computes: the answer comes, the process ends with 0",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(worker(ctx, Phase::Prefilling, "prefill")),
    },
    Cell {
        id: "F26.prefill-pulling",
        what: "SIGTERM to prefill while its KV waits to be read",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(worker(ctx, Phase::Pulling, "prefill")),
    },
    Cell {
        id: "F26.decode-prefilling",
        what: "SIGTERM to the decode worker that has granted, while prefill computes",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(worker(ctx, Phase::Prefilling, "decode")),
    },
    Cell {
        id: "F26.decode-pulling",
        what: "SIGTERM to decode at the beginning of its read",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(worker(ctx, Phase::Pulling, "decode")),
    },
    Cell {
        id: "F26.decode-decoding",
        what: "SIGTERM to decode in mid-stream",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(worker(ctx, Phase::Decoding, "decode")),
    },
    Cell {
        id: "F26.gateway-prefilling",
        what: "SIGTERM to the gateway while a prompt is computed: the answer comes whole within the grace, it ends with 0",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(gateway(ctx, Phase::Prefilling)),
    },
    Cell {
        id: "F26.gateway-decoding",
        what: "SIGTERM to the gateway in mid-stream: the answer comes whole within the grace, it ends with 0",
        setup: &TWO,
        bound: BOUND,
        run: |ctx| Box::pin(gateway(ctx, Phase::Decoding)),
    },
];

/// Above every grace here: passing it means that the process does not end.
const LIMIT: Duration = Duration::from_secs(20);

/// `limits.shutdown_ms` of the clusters here.
const GRACE: Duration = Duration::from_millis(3_000);

async fn worker(ctx: &mut Ctx, phase: Phase, role: &str) -> Measured {
    let request = ctx.request(150, 24);
    let held = hold(ctx, phase, &request).await;
    let leaving = held.worker(role);
    ctx.cluster.process(&leaving).signal(Signal::Terminate);
    ctx.injected();
    let_go(ctx, &leaving).await;
    let answer = held.guest.leaves().await;
    let client = ctx.since();
    let status = ctx.cluster.process(&leaving).ended(LIMIT).await;
    assert!(status.success(), "{leaving} ends with {status}");
    let back = ctx.back(ctx.workers - 1).await;
    ctx.cluster.start_worker(role, &leaving, &[]);
    ctx.cluster.ready(ctx.workers).await;
    let expected = ctx.reference(&request).await;
    same(&expected, &answer);
    Measured::new(client, back)
}

async fn gateway(ctx: &mut Ctx, phase: Phase) -> Measured {
    let request = ctx.request(60, 8);
    let held = hold(ctx, phase, &request).await;
    ctx.cluster.process("gateway-0").signal(Signal::Terminate);
    ctx.injected();
    let_go(ctx, "gateway-0").await;
    refused(ctx).await;
    let answer = held.guest.leaves().await;
    let client = ctx.since();
    let status = ctx.cluster.process("gateway-0").ended(LIMIT).await;
    assert!(status.success(), "the gateway ends with {status}");
    let ended = ctx.since();
    ctx.cluster.start_gateway(&[]);
    ctx.cluster.ready(ctx.workers).await;
    let back = ctx.back(ctx.workers).await;
    let why = answer.error.as_ref().and_then(|error| error["message"].as_str());
    let note = match why {
        // On a machine that does not get done in the grace: not before its end, and truly.
        Some(why) => {
            assert!(why.contains("shutting down") && !answer.done, "{answer:?}");
            assert!(client >= GRACE, "it was given up after {client:?}");
            "told that the gateway shuts down, at the end of the grace"
        }
        None => {
            let expected = ctx.reference(&request).await;
            same(&expected, &answer);
            "answered whole"
        }
    };
    Measured::new(client, back).note(format!("{note}; exit after {} ms", ended.as_millis()))
}

/// A new guest is sent away from a gateway that closes: with a 503, or, when the door is shut already, without an answer.
async fn refused(ctx: &mut Ctx) {
    let request = ctx.request(4, 4);
    let started = Instant::now();
    loop {
        match Guest::arrives(ctx, &request).hears().await {
            Ok(answer) if answer.status == 503 => return,
            // It had not heard the signal yet.
            Ok(answer) if answer.status == 200 && started.elapsed() < Duration::from_secs(2) => {}
            Ok(answer) => panic!("a gateway that closes serves: {answer:?}"),
            Err(_) => return,
        }
    }
}
