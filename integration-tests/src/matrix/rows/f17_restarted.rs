//! F17: a worker is killed and started again at once, under its name, before anybody can know. It is a new one; nothing of the old one is
//! believed; and it is used at once.

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::{same, whole};
use crate::matrix::phases::{Phase, hold, let_go};
use crate::matrix::setup::{SMALL, TWO_SHM};
use crate::process::Signal;

/// A lease, a start, and the request's work anew.
const BOUND: Bound = Bound::ms(8_000, 8_000);

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F17.prefill",
        what: "the only prefill worker restarts within a heartbeat while it computes: the request is answered by the new one",
        setup: &SMALL,
        bound: BOUND,
        run: |ctx| Box::pin(restarted(ctx, "prefill-0", Phase::Prefilling)),
    },
    Cell {
        id: "F17.decode",
        what: "the only decode worker restarts within a heartbeat while tokens come: the stream goes on at the new one",
        setup: &SMALL,
        bound: BOUND,
        run: |ctx| Box::pin(restarted(ctx, "decode-0", Phase::Decoding)),
    },
    Cell {
        id: "F17.pulling-shm",
        what: "both ends of a pull over shared memory restart within a heartbeat: the request is answered",
        setup: &TWO_SHM,
        bound: BOUND,
        run: |ctx| Box::pin(both(ctx)),
    },
];

async fn node(ctx: &Ctx, name: &str) -> Option<String> {
    let workers = ctx.cluster.workers().await;
    workers
        .into_iter()
        .find(|worker| worker.name == name)
        .map(|worker| worker.node)
}

fn restart(ctx: &mut Ctx, name: &str) {
    ctx.cluster.process(name).signal(Signal::Kill);
    let role = name.split('-').next().unwrap_or_default();
    ctx.cluster.start_worker(role, name, &[]);
}

async fn restarted(ctx: &mut Ctx, victim: &str, phase: Phase) -> Measured {
    let request = ctx.request(100, 12);
    let held = hold(ctx, phase, &request).await;
    let old = node(ctx, victim).await.unwrap();
    ctx.injected();
    restart(ctx, victim);
    let heard = held.guest.hears().await;
    let renewed = async || node(ctx, victim).await.filter(|now| *now != old);
    ctx.cluster.until("the new incarnation is linked", renewed).await;
    // A client that has nothing yet may be refused while there is no worker, and asks again: pairing works at once.
    let answer = match heard {
        Ok(answer) if answer.status == 503 => ctx.ask(&request).await,
        heard => heard.unwrap(),
    };
    let client = ctx.since();
    let back = ctx.back(ctx.workers).await;
    let expected = ctx.reference(&request).await;
    same(&expected, &answer);
    Measured::new(client, back)
}

async fn both(ctx: &mut Ctx) -> Measured {
    let request = ctx.request(100, 12);
    let held = hold(ctx, Phase::Pulling, &request).await;
    let victims = [held.worker("prefill"), held.worker("decode")];
    ctx.injected();
    for victim in &victims {
        restart(ctx, victim);
    }
    let_go(ctx, "").await;
    whole(&held.guest.leaves().await);
    let client = ctx.since();
    ctx.cluster.ready(ctx.workers).await;
    let back = ctx.back(ctx.workers).await;
    Measured::new(client, back)
}
