//! What was found, as tables.

use super::peer::{Kind, Which};
use super::series::Series;
use super::{Found, Order, Trips, World};
use crate::bench::page::Page;
use crate::bench::sample::cell;
use crate::bench::spread::Spread;

/// Who took part, in which version.
pub(super) fn settings(page: &mut Page, world: &World, no_net: Option<&String>) {
    let all = [
        Kind::Ours(Which::Own),
        Kind::Ours(Which::Theirs),
        Kind::Perftest { notice: true },
        Kind::Nixl,
        Kind::Mooncake,
    ];
    for kind in all {
        let version = kind.version(world).unwrap_or_else(|why| why);
        page.line(&format!("* {}: {version}", kind.name()));
    }
    let network = match no_net {
        None => "a network of their own, which has nothing but loopback for them".to_owned(),
        Some(why) => format!("the machine's own network ({why})"),
    };
    page.line(&format!("\nUCX's settings: `UCX_NET_DEVICES=lo`, and `UCX_TLS=tcp`, or for shared memory `UCX_TLS=tcp,posix,sysv,cma,self`. All were in {network}.\n"));
}

/// GB/s.
pub(super) fn moves(page: &mut Page, found: &[Found], copy: Spread) {
    page.line(&format!(
        "## Moves\n\nThe floor: one thread copies such memory at {copy:.1} GB/s, measured before each case in this run. A move over shared memory copies \
         every byte once (`cma`) or twice, one over tcp at least twice, and ours reads it once more at either end for a checksum.\n\n\
         *ucx_perftest* sends contiguous blocks as one message, and scattered ones as a message each, these out of one buffer into one other, so that they \
         lie in caches; it checks nothing. It and ours ask UCX to notice a peer's death, which is why UCX may carry bytes otherwise than where \
         deaths are not noticed. *NIXL* and *Mooncake* move contiguous blocks as one descriptor.\n"
    ));
    page.head(&[
        "over",
        "blocks",
        "who",
        "GB/s",
        "of a copy",
        "innkeeper by it",
        "innkeeper with its UCX by it",
    ]);
    for found in found {
        let kinds = Kind::of(found.transport);
        for (at, order) in Order::BOTH.into_iter().enumerate() {
            let case = format!("{} KiB, {}", found.block_bytes >> 10, order.name());
            let series = |kind: Kind| {
                let which = kinds.iter().position(|&other| other == kind)?;
                Some(&found.rates[which][at])
            };
            for &kind in kinds {
                let Some(own) = series(kind) else { continue };
                let start = [
                    found.transport.name().to_owned(),
                    case.clone(),
                    kind.name().to_owned(),
                ];
                page.row(&[&start[..], &rate(kind, own, &series, copy)].concat());
            }
        }
    }
    page.line("");
}

/// The rest of a row.
fn rate<'a>(
    kind: Kind,
    own: &Series,
    series: &impl Fn(Kind) -> Option<&'a Series>,
    copy: Spread,
) -> Vec<String> {
    if let Some(error) = own.error() {
        return vec![format!("failed: {error}")];
    }
    let spread = own.spread();
    let by = |ours: Which| {
        let ratio = series(Kind::Ours(ours)).and_then(|ours| ours.by(own));
        cell(ratio, 2)
    };
    let [newest, same] = match kind {
        Kind::Ours(_) => [String::new(), String::new()],
        Kind::Perftest { notice: true } => [by(Which::Own), by(Which::Theirs)],
        _ => [by(Which::Own), String::new()],
    };
    let of_copy = spread.map_or_else(String::new, |spread| {
        format!("{:.2}", spread.median / copy.median)
    });
    vec![cell(spread, 2), of_copy, newest, same]
}

/// Microseconds, and processor time of those that do nothing.
pub(super) fn trips(page: &mut Page, trips: &[Trips]) {
    page.line(
        "## Round trips\n\nOf 8 bytes: for *ucx_perftest* there and back on threads that only poll; for the others a read of one block, from the call \
         until its end is known. *Idle*: processor time of both processes together in a second in which nothing is moved, connected as they are.\n",
    );
    page.head(&[
        "over",
        "who",
        "us",
        "innkeeper by it",
        "idle, ms of processor a second",
    ]);
    for trips in trips {
        let kinds = Kind::of(trips.transport);
        let ours = kinds.iter().position(|&kind| kind == Kind::Ours(Which::Own));
        for (at, kind) in kinds.iter().enumerate() {
            let over = trips.transport.name().to_owned();
            let us = &trips.us[at];
            if let Some(error) = us.error() {
                page.row(&[over, kind.name().to_owned(), format!("failed: {error}")]);
                continue;
            }
            let other = ours.filter(|&ours| ours != at);
            let ratio = other.map_or_else(String::new, |ours| cell(trips.us[ours].by(us), 2));
            let idle = cell(trips.idle_ms[at].spread(), 2);
            page.row(&[over, kind.name().to_owned(), cell(us.spread(), 1), ratio, idle]);
        }
    }
    page.line("");
}
