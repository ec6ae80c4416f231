//! F19: a worker's network for KV is cut while its links live, and the reverse.

use serde_json::json;
use tokio::time::Instant;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::guests::{Guests, serves_again};
use crate::matrix::load::{Guest, longest_gap, same, whole};
use crate::matrix::worlds::{SPACES, Spaces};
use crate::netns::{Lane, Net};

/// The progress deadline of transfers is 2 s; then another attempt.
const BOUND: Bound = Bound::ms(6_000, 8_000);

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F19.data-decode",
        what: "KV network of one decode cut, links live: reads there fail by their deadline, all answers come, same tokens",
        setup: &SPACES,
        bound: BOUND,
        run: |ctx| Box::pin(data(ctx, "decode-0")),
    },
    Cell {
        id: "F19.data-prefill",
        what: "the same for one prefill",
        setup: &SPACES,
        bound: BOUND,
        run: |ctx| Box::pin(data(ctx, "prefill-0")),
    },
    Cell {
        id: "F19.mid-pull",
        what: "KV network of the room's decode cut at the beginning of its read, on a connection that stands",
        setup: &SPACES,
        bound: BOUND,
        run: |ctx| Box::pin(mid_pull(ctx)),
    },
    Cell {
        id: "F19.control",
        what: "links of one decode cut, KV network lives: its streams migrate; blocks: after healing, served by it, all back",
        setup: &SPACES,
        bound: Bound::ms(4_000, 5_000),
        run: |ctx| Box::pin(control(ctx)),
    },
];

/// The networks, or how a cell says that there are none.
fn net(ctx: &Ctx) -> Result<&Net, Measured> {
    let spaces = ctx.beside::<Spaces>();
    spaces.0.as_ref().map_err(Measured::skipped)
}

/// Guests come after the cut; some are sent to the victim.
async fn data(ctx: &mut Ctx, victim: &str) -> Measured {
    match net(ctx) {
        Ok(net) => net.cut(victim, Lane::Data),
        Err(skipped) => return skipped,
    }
    ctx.injected();
    let requests: Vec<_> = (0..6).map(|_| ctx.request(40, 8)).collect();
    let guests: Vec<_> = requests
        .iter()
        .map(|request| Guest::arrives(ctx, request))
        .collect();
    let mut answers = Vec::new();
    for guest in guests {
        answers.push(guest.leaves().await);
    }
    let client = ctx.since();
    answers.iter().for_each(whole);
    let back = ctx.back(ctx.workers).await;
    let pulls = ctx.cluster.metrics().await;
    if let Ok(net) = net(ctx) {
        net.heal(victim, Lane::Data);
    }
    let healed = Instant::now();
    if victim.starts_with("decode") {
        serves_again(ctx, victim).await;
    }
    ctx.cluster.all_back(ctx.workers).await;
    for (request, answer) in requests.iter().zip(&answers) {
        let expected = ctx.reference(request).await;
        same(&expected, answer);
    }
    let fast = answers
        .iter()
        .filter(|answer| answer.first.as_millis() < 1_500)
        .count();
    Measured::new(client, back).note(format!(
        "{fast} of 6 not delayed; {:?}; used again {} ms after healing",
        pulls.samples("innkeeper_attempts_retried_total"),
        healed.elapsed().as_millis()
    ))
}

/// The cut is between the order to read and the read.
async fn mid_pull(ctx: &mut Ctx) -> Measured {
    if let Err(skipped) = net(ctx) {
        return skipped;
    }
    // Every pair has met: connections stand.
    let guests = Guests::arrive(ctx, 8).await;
    guests.leave(ctx).await;
    let request = ctx.request(150, 8);
    for decode in ["decode-0", "decode-1"] {
        ctx.fault(decode, json!({ "reads": { "does": "hold_start" } }))
            .await;
    }
    let guest = Guest::arrives(ctx, &request);
    let room = super::super::phases::arrived(ctx, super::super::phases::Phase::Pulling).await;
    let mut holders = room.held_by.iter().map(|held| held.worker.clone());
    let victim = holders
        .find(|worker| worker.starts_with("decode"))
        .expect("somebody pulls");
    if let Ok(net) = net(ctx) {
        net.cut(&victim, Lane::Data);
    }
    ctx.injected();
    for decode in ["decode-0", "decode-1"] {
        ctx.fault(decode, json!({ "reads": { "does": "pass" } })).await;
    }
    let answer = guest.leaves().await;
    let client = ctx.since();
    let back = ctx.back(ctx.workers).await;
    if let Ok(net) = net(ctx) {
        net.heal(&victim, Lane::Data);
    }
    let expected = ctx.reference(&request).await;
    same(&expected, &answer);
    serves_again(ctx, &victim).await;
    ctx.cluster.all_back(ctx.workers).await;
    Measured::new(client, back)
}

/// As a cut link, but nothing else of the worker's is cut.
async fn control(ctx: &mut Ctx) -> Measured {
    if let Err(skipped) = net(ctx) {
        return skipped;
    }
    let victim = "decode-0";
    let guests = Guests::at(ctx, victim).await;
    if let Ok(net) = net(ctx) {
        net.cut(victim, Lane::Control);
    }
    ctx.injected();
    let heard = guests.hear().await;
    let client = longest_gap(&heard.answers);
    ctx.cluster.all_back(ctx.workers - 1).await;
    let others = ctx.since();
    if let Ok(net) = net(ctx) {
        net.heal(victim, Lane::Control);
    }
    let healed = Instant::now();
    serves_again(ctx, victim).await;
    ctx.cluster.all_back(ctx.workers).await;
    let back = healed.elapsed();
    heard.check(ctx).await;
    Measured::new(client, back).note(format!("back at the others after {} ms", others.as_millis()))
}
