//! F29: the wall clock of a process steps by an hour. Nothing happens: deadlines and leases go by the monotonic clock. (That no source
//! decides by the wall clock is a test of its own, `clocks`.)

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::sleep;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::guests::{Guests, serves_again};
use crate::matrix::load::longest_gap;
use crate::matrix::setup::TWO;
use crate::process::Signal;

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F29.steps",
        what: "wall clocks of the gateway and a decode worker step by an hour, back and forth, in mid-stream: nothing happens",
        setup: &TWO,
        bound: Bound::ms(2_000, 6_000),
        run: |ctx| Box::pin(steps(ctx)),
    },
    Cell {
        id: "F29.restarted-behind",
        what: "a worker is killed and comes back with a wall clock an hour behind: it is linked and used; client: start to linked",
        setup: &TWO,
        bound: Bound::ms(8_000, 15_000),
        run: |ctx| Box::pin(restarted(ctx)),
    },
];

/// The library that stands between a process and the wall clock, where distributions put it.
fn library() -> Option<PathBuf> {
    let folders = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
    ];
    let paths = folders.map(|folder| Path::new(folder).join("faketime/libfaketimeMT.so.1"));
    paths.into_iter().find(|path| path.is_file())
}

const LACKING: &str = "libfaketime";
const LIMIT: Duration = Duration::from_secs(20);

/// Has a process see the time that this file says.
fn behind(ctx: &mut Ctx, name: &str, library: &Path, file: &Path) {
    let words = [
        "env".to_owned(),
        format!("LD_PRELOAD={}", library.display()),
        format!("FAKETIME_TIMESTAMP_FILE={}", file.display()),
        "FAKETIME_NO_CACHE=1".to_owned(),
        "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
        "DONT_FAKE_MONOTONIC=1".to_owned(),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    ctx.cluster.behind(name, &words);
}

/// Restarts these processes: behind the library, or as they were.
async fn restart(ctx: &mut Ctx, names: &[&str], clock: Option<(&Path, &Path)>) {
    for name in names {
        ctx.cluster.process(name).signal(Signal::Terminate);
        ctx.cluster.process(name).ended(LIMIT).await;
        match clock {
            Some((library, file)) => behind(ctx, name, library, file),
            None => ctx.cluster.behind(name, &[]),
        }
        match name.starts_with("gateway") {
            true => ctx.cluster.start_gateway(&[]),
            false => ctx.cluster.start_worker("decode", name, &[]),
        }
    }
    ctx.cluster.ready(ctx.workers).await;
}

async fn steps(ctx: &mut Ctx) -> Measured {
    let Some(library) = library() else {
        return Measured::skipped(LACKING);
    };
    let file = ctx.cluster.folder().join("clock");
    std::fs::write(&file, "+0\n").unwrap();
    let disturbed = ["gateway-0", "decode-0"];
    restart(ctx, &disturbed, Some((&library, &file))).await;
    let guests = Guests::at(ctx, "decode-0").await;
    ctx.injected();
    for step in ["+3600\n", "-3600\n", "+0\n", "-3600\n"] {
        std::fs::write(&file, step).unwrap();
        sleep(Duration::from_millis(600)).await;
    }
    let heard = guests.hear().await;
    let retried = ctx.metric("innkeeper_attempts_retried_total", "").await;
    let fences = ctx.metric("innkeeper_fences_total", "").await;
    assert_eq!((retried, fences), (0.0, 0.0), "retries and fences");
    let back = ctx.cluster.all_back(ctx.workers).await;
    restart(ctx, &disturbed, None).await;
    heard.check(ctx).await;
    Measured::new(longest_gap(&heard.answers), back)
}

async fn restarted(ctx: &mut Ctx) -> Measured {
    let Some(library) = library() else {
        return Measured::skipped(LACKING);
    };
    let file = ctx.cluster.folder().join("clock");
    std::fs::write(&file, "-3600\n").unwrap();
    ctx.cluster.process("decode-0").signal(Signal::Kill);
    ctx.cluster.process("decode-0").ended(LIMIT).await;
    behind(ctx, "decode-0", &library, &file);
    ctx.injected();
    ctx.cluster.start_worker("decode", "decode-0", &[]);
    ctx.cluster.ready(ctx.workers - 1).await;
    ctx.cluster.ready(ctx.workers).await;
    let client = ctx.since();
    serves_again(ctx, "decode-0").await;
    let back = ctx.back(ctx.workers).await;
    restart(ctx, &["decode-0"], None).await;
    Measured::new(client, back)
}
