//! F16: the gateway is killed. Its workers stop computing its rooms and free them within a lease and a second.

use std::time::Duration;

use tokio::time::sleep;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::phases::{Phase, hold};
use crate::matrix::setup::SMALL;
use crate::process::Signal;

/// The client's time is that until no worker makes a step any more; the blocks are seen by the next gateway, which has to start first.
const BOUND: Bound = Bound::ms(3_000, 6_000);

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F16.prefilling",
        what: "gateway killed while a prompt is computed: no step is made after a lease; the next gateway finds every block free",
        setup: &SMALL,
        bound: BOUND,
        run: |ctx| Box::pin(killed(ctx, Phase::Prefilling)),
    },
    Cell {
        id: "F16.pulling",
        what: "gateway killed while KV is pulled",
        setup: &SMALL,
        bound: BOUND,
        run: |ctx| Box::pin(killed(ctx, Phase::Pulling)),
    },
    Cell {
        id: "F16.decoding",
        what: "gateway killed while tokens come: the client's connection breaks, no step is made after a lease",
        setup: &SMALL,
        bound: BOUND,
        run: |ctx| Box::pin(killed(ctx, Phase::Decoding)),
    },
];

/// Longer than a step that is held back.
const QUIET: Duration = Duration::from_millis(900);

async fn killed(ctx: &mut Ctx, phase: Phase) -> Measured {
    let request = ctx.request(300, 200);
    let held = hold(ctx, phase, &request).await;
    ctx.cluster.process("gateway-0").signal(Signal::Kill);
    ctx.injected();
    let cut = held.guest.hears().await;
    assert!(!matches!(&cut, Ok(answer) if answer.done), "{cut:?}");
    ctx.cluster.start_gateway(&[]);
    let client = quiet(ctx).await;
    ctx.cluster.ready(ctx.workers).await;
    let back = ctx.back(ctx.workers).await;
    Measured::new(client, back)
}

/// Time of the last step of any worker, since the injection.
async fn quiet(ctx: &Ctx) -> Duration {
    let steps = async || ctx.steps("prefill-0").await + ctx.steps("decode-0").await;
    let (mut last, mut count) = (ctx.since(), steps().await);
    while ctx.since() < last + QUIET {
        sleep(Duration::from_millis(30)).await;
        let now = steps().await;
        if now != count {
            (last, count) = (ctx.since(), now);
        }
        assert!(ctx.since() < Duration::from_secs(60), "steps are made for ever");
    }
    last
}
