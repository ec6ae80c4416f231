//! F18, the clients' side: a client's connection breaks, or stands still for a while.

use std::time::Duration;

use tokio::time::sleep;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::load::same;
use crate::matrix::worlds::{LINKED, Proxies};
use crate::proxy::{TcpRule, Way};
use crate::stream::Stream;

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F18.client-cut",
        what: "a client's connection is cut in mid-stream: its room is aborted, everything comes back",
        setup: &LINKED,
        bound: Bound::ms(3_000, 3_000),
        run: |ctx| Box::pin(cut(ctx)),
    },
    Cell {
        id: "F18.client-held",
        what: "a client's connection stands still for 2 s: the stream goes on, same tokens",
        setup: &LINKED,
        bound: Bound::ms(3_000, 6_000),
        run: |ctx| Box::pin(held(ctx)),
    },
];

async fn cut(ctx: &mut Ctx) -> Measured {
    let request = ctx.request(30, 2_000);
    let to = ctx.beside::<Proxies>().clients.address();
    let mut stream = Stream::open(to, &request).await.unwrap();
    stream.read_tokens(4).await.unwrap();
    ctx.beside::<Proxies>().clients.sever();
    ctx.injected();
    let heard = stream.finish().await;
    assert!(!matches!(&heard, Ok(answer) if answer.done), "{heard:?}");
    let aborted = || async {
        let ended = ctx.cluster.rooms_ended().await;
        let last = ended
            .iter()
            .find(|room| room.outcome.as_deref() == Some("aborted"));
        (last.is_some() && ctx.cluster.rooms().await.is_empty()).then_some(())
    };
    ctx.cluster.until("the room is aborted", aborted).await;
    let client = ctx.since();
    let back = ctx.back(ctx.workers).await;
    Measured::new(client, back)
}

async fn held(ctx: &mut Ctx) -> Measured {
    let request = ctx.request(30, 40);
    let to = ctx.beside::<Proxies>().clients.address();
    let mut stream = Stream::open(to, &request).await.unwrap();
    stream.read_tokens(4).await.unwrap();
    stream.mark();
    let clients = &ctx.beside::<Proxies>().clients;
    clients.set(Way::Back, TcpRule::HOLD);
    ctx.injected();
    sleep(Duration::from_secs(2)).await;
    ctx.beside::<Proxies>().clients.set(Way::Back, TcpRule::PASS);
    let answer = stream.finish().await.unwrap();
    let back = ctx.back(ctx.workers).await;
    let expected = ctx.reference(&request).await;
    same(&expected, &answer);
    Measured::new(answer.longest_gap, back)
}
