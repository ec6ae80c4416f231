//! F28: workers that do not fit are refused as they link up, and told why; the others go on.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::sleep;

use crate::matrix::cell::{Bound, Cell, Measured};
use crate::matrix::ctx::Ctx;
use crate::matrix::intruder::{fitting, refused};
use crate::matrix::load::whole;
use crate::matrix::setup::TWO;
use crate::process::Signal;

/// A process that starts reads its weights first.
const STARTED: Bound = Bound::ms(20_000, 25_000);

pub(super) const CELLS: &[Cell] = &[
    Cell {
        id: "F28.block-size",
        what: "a worker with blocks of 32 tokens is refused with the reason, on both sides, and used by nobody",
        setup: &TWO,
        bound: STARTED,
        run: |ctx| Box::pin(block_size(ctx)),
    },
    Cell {
        id: "F28.weights",
        what: "the same for one whose weights differ in a single byte",
        setup: &TWO,
        bound: STARTED,
        run: |ctx| Box::pin(weights(ctx)),
    },
    Cell {
        id: "F28.model-and-layout",
        what: "peers that say another model, or another layout (element type, numerics), are refused with the reason",
        setup: &TWO,
        bound: Bound::ms(2_000, 4_000),
        run: |ctx| Box::pin(said(ctx)),
    },
];

const LIMIT: Duration = Duration::from_secs(40);

async fn block_size(ctx: &mut Ctx) -> Measured {
    stranger(ctx, &["worker.block_tokens=32"], "blocks hold 32 tokens").await
}

async fn weights(ctx: &mut Ctx) -> Measured {
    let changed = ctx.cluster.folder().join("changed");
    std::fs::create_dir_all(&changed).unwrap();
    let copy = copy_with_another_byte(&ctx.cluster.cache().join("models"), &changed);
    let set = format!("model.source={}", copy.display());
    let measured = stranger(ctx, &[&set], "weights and numerics must agree").await;
    std::fs::remove_dir_all(&changed).unwrap();
    measured
}

/// The model file, but for one byte of its weights.
fn copy_with_another_byte(models: &Path, to: &Path) -> PathBuf {
    let files = std::fs::read_dir(models).unwrap().flatten();
    let gguf = files
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "gguf"))
        .expect("the model");
    let mut bytes = std::fs::read(&gguf).unwrap();
    // Weights are the last thing in the file.
    let at = bytes.len() - bytes.len() / 4;
    bytes[at] ^= 1;
    let copy = to.join(gguf.file_name().expect("a file has a name"));
    std::fs::write(&copy, bytes).unwrap();
    copy
}

/// A worker that is started with these settings is refused, and hears and says why.
async fn stranger(ctx: &mut Ctx, sets: &[&str], reason: &str) -> Measured {
    ctx.injected();
    ctx.cluster.start_worker("decode", "stranger", sets);
    let line = loop {
        let log = ctx.cluster.process("stranger").log();
        if let Some(line) = log.lines().find(|line| line.contains("refused")) {
            break line.to_owned();
        }
        assert!(ctx.since() < LIMIT, "the stranger is not refused: {log}");
        sleep(Duration::from_millis(20)).await;
    };
    let client = ctx.since();
    assert!(line.contains(reason), "{line}");
    // The gateway writes it down after it has told.
    while !told(ctx, reason) {
        assert!(
            ctx.since() < LIMIT,
            "the gateway does not say whom it refused, and why"
        );
        sleep(Duration::from_millis(20)).await;
    }
    let workers = ctx.cluster.workers().await;
    assert!(
        workers.iter().all(|worker| worker.name != "stranger"),
        "{workers:?}"
    );
    let request = ctx.request(8, 4);
    whole(&ctx.ask(&request).await);
    ctx.cluster.process("stranger").signal(Signal::Terminate);
    let status = ctx.cluster.process("stranger").ended(LIMIT).await;
    assert!(status.success(), "{status}");
    let back = ctx.back(ctx.workers).await;
    Measured::new(client, back)
}

/// Whether the gateway says whom it refused, and why.
fn told(ctx: &mut Ctx, reason: &str) -> bool {
    let log = ctx.cluster.process("gateway-0").log();
    log.lines()
        .any(|line| line.contains("stranger") && line.contains(reason))
}

async fn said(ctx: &mut Ctx) -> Measured {
    let (to, authority) = (ctx.cluster.ports().mesh, ctx.cluster.cache().join("dev-ca"));
    let fits = fitting(to, &authority).await;
    ctx.injected();
    let mut other = fits.clone();
    other.model = "another".to_owned();
    let why = refused(to, &authority, &other).await;
    assert!(why.contains("it serves another"), "{why}");
    let mut other = fits.clone();
    other.layout_hash ^= 1;
    let why = refused(to, &authority, &other).await;
    assert!(
        why.contains("element type, weights and numerics must agree"),
        "{why}"
    );
    let mut other = fits;
    (other.min_version, other.max_version) = (wire::VERSION + 1, wire::VERSION + 1);
    let why = refused(to, &authority, &other).await;
    assert!(why.contains("version"), "{why}");
    let client = ctx.since();
    let request = ctx.request(8, 4);
    whole(&ctx.ask(&request).await);
    let back = ctx.back(ctx.workers).await;
    Measured::new(client, back)
}
