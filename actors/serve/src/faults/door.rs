//! Where a test turns the switches: `POST /faults` with what is to change, and `GET /faults` for what was hit so far.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use kv::{Fault, Faulty, ReadError};
use kv_ucx::UcxTransfer;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tracing::{error, warn};
use wire::Kind;

use super::SWITCHES;

/// What is to change. What is not named stays as it is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Change {
    /// Everything off, before the rest.
    calm: bool,
    engine: Engine,
    reads: Option<Reads>,
    /// By the name of a kind of frames, such as `close`.
    frames: BTreeMap<String, Frames>,
    cut: Option<Cut>,
    doom: Option<Doom>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Engine {
    step_ms: Option<u64>,
    stuck: Option<bool>,
    panic: bool,
    fail: bool,
}

/// What happens to reads of KV that this process starts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reads {
    does: ReadFault,
    /// Which of those to come, counted from 0; all of them if not said.
    nth: Option<u64>,
}

#[derive(Copy, Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReadFault {
    Fail,
    HoldStart,
    HoldEnd,
    Panic,
    WrongCapability,
    StaleGeneration,
    /// Not a read's: no withdrawal of an offer of this process is told, as if sends were in flight.
    HoldWithdrawn,
    /// Those to come are not hit; what is held stays.
    LaterPass,
    /// What is held goes on, and no fault is left.
    Pass,
}

/// What happens to frames of a kind that this process sends.
#[derive(Copy, Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Frames {
    Pass,
    Drop,
    Duplicate,
    DelayMs(u64),
}

/// Which way links are cut, seen from here.
#[derive(Copy, Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cut {
    out: bool,
    r#in: bool,
}

/// How many owners of requests panic as they are born, and how many heirs right after.
#[derive(Copy, Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Doom {
    at_birth: u32,
    after_birth: u32,
}

/// What was hit so far.
#[derive(Clone, Debug, Serialize)]
struct Hits {
    /// Frames that were lost, repeated or delayed.
    frames: u64,
    /// Steps that the engine has begun.
    steps: u64,
    /// Reads of KV that were started, or held.
    reads: u64,
}

/// Opens the door, if one is configured: an address, or nothing.
pub(crate) async fn open(address: &str) -> Result<()> {
    if address.is_empty() {
        return Ok(());
    }
    let address: SocketAddr = address.parse().context("faults.listen")?;
    let listener = TcpListener::bind(address).await.context("faults.listen")?;
    warn!(%address, "a test's fault switches can be turned here");
    let router = Router::new().route("/faults", get(hits).post(change));
    // Ends with the process.
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            error!(%error, "the door of the fault switches");
        }
    });
    Ok(())
}

async fn hits() -> Json<Hits> {
    Json(Hits {
        frames: SWITCHES.mesh.hits(),
        steps: SWITCHES.engine.steps.load(Ordering::Relaxed),
        reads: reads().map_or(0, |reads| reads.reads_seen()),
    })
}

async fn change(Json(change): Json<Change>) -> (StatusCode, String) {
    warn!(?change, "a test turns fault switches");
    if change.reads.is_some() && reads().is_none() {
        // A worker that is built anew has none for a moment.
        let why = "no worker of this process reads over UCX now\n";
        return (StatusCode::SERVICE_UNAVAILABLE, why.to_owned());
    }
    match apply(&change) {
        Ok(()) => (StatusCode::OK, String::new()),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error:#}\n")),
    }
}

fn apply(change: &Change) -> Result<()> {
    if change.calm {
        calm();
    }
    let engine = &SWITCHES.engine;
    if let Some(step_ms) = change.engine.step_ms {
        engine.step_ms.store(step_ms, Ordering::Relaxed);
    }
    if let Some(stuck) = change.engine.stuck {
        engine.stuck.store(stuck, Ordering::Relaxed);
    }
    engine.panic.fetch_or(change.engine.panic, Ordering::Relaxed);
    engine.fail.fetch_or(change.engine.fail, Ordering::Relaxed);
    if let Some(wanted) = &change.reads {
        let reads = reads().context("this process has no worker that reads over UCX")?;
        set_reads(&reads, wanted);
    }
    for (kind, fault) in &change.frames {
        set_frames(kind, *fault)?;
    }
    if let Some(Cut { out, r#in }) = change.cut {
        SWITCHES.mesh.cut(out, r#in);
    }
    if let Some(doom) = change.doom {
        let gateway = SWITCHES.gateway.lock().unwrap_or_else(PoisonError::into_inner);
        let gateway = gateway.as_ref().context("this process has no gateway")?;
        gateway.doom(doom.at_birth, doom.after_birth);
    }
    Ok(())
}

fn set_reads(reads: &Faulty<UcxTransfer>, wanted: &Reads) {
    let fault = match wanted.does {
        ReadFault::HoldWithdrawn => return reads.hold_withdrawn(true),
        ReadFault::LaterPass => return reads.on_every(None),
        ReadFault::Pass => {
            reads.on_every(None);
            return reads.release();
        }
        ReadFault::Fail => Fault::Fail(ReadError::Local("a test's fault switch".to_owned())),
        ReadFault::HoldStart => Fault::HoldStart,
        ReadFault::HoldEnd => Fault::HoldEnd,
        ReadFault::Panic => Fault::Panic,
        ReadFault::WrongCapability => Fault::WrongCapability,
        ReadFault::StaleGeneration => Fault::StaleGeneration,
    };
    match wanted.nth {
        Some(nth) => reads.on_read(reads.reads_seen() + nth, fault),
        None => reads.on_every(Some(fault)),
    }
}

fn set_frames(kind: &str, fault: Frames) -> Result<()> {
    let known = Kind::ALL.iter().find(|known| known.name() == kind);
    let kind = known.with_context(|| format!("no frame is called {kind:?}"))?;
    let fault = match fault {
        Frames::Pass => None,
        Frames::Drop => Some(mesh::Fault::Drop),
        Frames::Duplicate => Some(mesh::Fault::Duplicate),
        Frames::DelayMs(ms) => Some(mesh::Fault::Delay(Duration::from_millis(ms))),
    };
    SWITCHES.mesh.set(*kind, fault);
    Ok(())
}

fn calm() {
    let engine = &SWITCHES.engine;
    engine.step_ms.store(0, Ordering::Relaxed);
    for switch in [&engine.stuck, &engine.panic, &engine.fail] {
        switch.store(false, Ordering::Relaxed);
    }
    if let Some(reads) = reads() {
        reads.on_every(None);
        reads.release();
    }
    for kind in Kind::ALL {
        SWITCHES.mesh.set(*kind, None);
    }
    SWITCHES.mesh.cut(false, false);
    let gateway = SWITCHES.gateway.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(gateway) = gateway.as_ref() {
        gateway.doom(0, 0);
    }
}

fn reads() -> Option<Arc<Faulty<UcxTransfer>>> {
    let reads = SWITCHES.reads.lock().unwrap_or_else(PoisonError::into_inner);
    reads.upgrade()
}
