//! F18: a worker's link is cut one way or both, for less and for more than the lease, and healed; packets come late, twice, or out of order.
//! Rooms go on or migrate, with the same tokens; after healing the worker is used again.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::guests::{Guests, serves_again};
use crate::matrix::load::longest_gap;
use crate::matrix::worlds::{LINKED, Proxies};
use crate::proxy::{UdpRule, Way};

/// The client: the lease, and its prompt and tokens computed anew. The blocks: traffic returns.
const LONG: Bound = Bound::ms(4_000, 5_000);
/// Less than a lease: only the silence itself, and what QUIC takes to send again.
const SHORT: Bound = Bound::ms(2_500, 5_000);

const SECOND: Duration = Duration::from_secs(1);
const VICTIM: &str = "decode-0";

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F18.out-1s",
        what: "decode's link cut for 1 s, from it: streams go on; blocks: from healing until it serves again",
        setup: &LINKED,
        bound: SHORT,
        run: |ctx| Box::pin(shortly(ctx, &[Way::Out], UdpRule::CUT, SECOND)),
    },
    Cell {
        id: "F18.back-1s",
        what: "the same, towards it",
        setup: &LINKED,
        bound: SHORT,
        run: |ctx| Box::pin(shortly(ctx, &[Way::Back], UdpRule::CUT, SECOND)),
    },
    Cell {
        id: "F18.both-1s",
        what: "the same, both ways",
        setup: &LINKED,
        bound: SHORT,
        run: |ctx| Box::pin(shortly(ctx, &Way::BOTH, UdpRule::CUT, SECOND)),
    },
    Cell {
        id: "F18.out-30s",
        what: "decode's link cut for 30 s, from it: its streams migrate; blocks: from healing until it serves again",
        setup: &LINKED,
        bound: LONG,
        run: |ctx| Box::pin(long(ctx, &[Way::Out])),
    },
    Cell {
        id: "F18.back-30s",
        what: "the same, towards it",
        setup: &LINKED,
        bound: LONG,
        run: |ctx| Box::pin(long(ctx, &[Way::Back])),
    },
    Cell {
        id: "F18.both-30s",
        what: "the same, both ways",
        setup: &LINKED,
        bound: LONG,
        run: |ctx| Box::pin(long(ctx, &Way::BOTH)),
    },
    Cell {
        id: "F18.held",
        what: "decode's packets are held for 3 s, then all of them come: nothing of the ended link is believed",
        setup: &LINKED,
        bound: LONG,
        run: |ctx| Box::pin(shortly(ctx, &Way::BOTH, UdpRule::HOLD, SECOND * 3)),
    },
    Cell {
        id: "F18.lossy",
        what: "of every link 5 % of packets lost, 10 % twice, all 0-30 ms late: every answer whole, same tokens",
        setup: &LINKED,
        bound: Bound::ms(10_000, 10_000),
        run: |ctx| Box::pin(lossy(ctx)),
    },
];

/// One link is under a rule for some time that is over before the streams are.
async fn shortly(ctx: &mut Ctx, ways: &'static [Way], rule: UdpRule, lasts: Duration) -> Measured {
    let guests = Guests::at(ctx, VICTIM).await;
    set(ctx, ways, rule);
    ctx.injected();
    sleep(lasts).await;
    set(ctx, &Way::BOTH, UdpRule::PASS);
    let healed = Instant::now();
    serves_again(ctx, VICTIM).await;
    let back = healed.elapsed();
    let heard = guests.hear().await;
    heard.check(ctx).await;
    ctx.cluster.all_back(ctx.workers).await;
    Measured::new(longest_gap(&heard.answers), back)
}

/// One link is cut; everything else has come to its end before it is healed.
async fn long(ctx: &mut Ctx, ways: &'static [Way]) -> Measured {
    let guests = Guests::at(ctx, VICTIM).await;
    set(ctx, ways, UdpRule::CUT);
    let ends = Instant::now() + Duration::from_secs(30);
    ctx.injected();
    let heard = guests.hear().await;
    ctx.cluster.all_back(ctx.workers - 1).await;
    let others = ctx.since().as_millis();
    heard.check(ctx).await;
    sleep_until(ends).await;
    set(ctx, &Way::BOTH, UdpRule::PASS);
    let healed = Instant::now();
    serves_again(ctx, VICTIM).await;
    ctx.cluster.all_back(ctx.workers).await;
    let measured = Measured::new(longest_gap(&heard.answers), healed.elapsed());
    measured.note(format!(
        "streams over and all back at the others after {others} ms"
    ))
}

fn set(ctx: &Ctx, ways: &[Way], rule: UdpRule) {
    let link = ctx.beside::<Proxies>().link(VICTIM);
    ways.iter().for_each(|way| link.set(*way, rule));
}

/// All links are bad, for as long as some guests are here.
async fn lossy(ctx: &mut Ctx) -> Measured {
    let rule = UdpRule {
        loss_percent: 5,
        duplicate_percent: 10,
        jitter: Duration::from_millis(30),
        ..UdpRule::PASS
    };
    ctx.beside::<Proxies>().set_all(rule);
    ctx.injected();
    let heard = Guests::arrive(ctx, 8).await.hear().await;
    let client = ctx.since();
    let proxies = ctx.beside::<Proxies>();
    let counted = Way::BOTH.map(|way| proxies.link(VICTIM).counts(way));
    let lost: u64 = counted.iter().map(|counts| counts.lost).sum();
    assert!(lost > 0, "nothing was lost: {counted:?}");
    let back = ctx.back(ctx.workers).await;
    ctx.beside::<Proxies>().set_all(UdpRule::PASS);
    heard.check(ctx).await;
    let gap = longest_gap(&heard.answers).as_millis();
    Measured::new(client, back).note(format!("longest gap {gap} ms; {lost} packets lost at {VICTIM}"))
}
