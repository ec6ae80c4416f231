//! Servers that are measured: ours, and those that somebody would use instead. Each is started afresh for what it is measured at, and ends with it.

mod dynamo;
mod llama;
mod ours;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

pub(super) use ours::mocks;

use super::client::Load;
use super::usage::Usage;
use crate::cluster::Cluster;
use crate::http::{get, post};
use crate::prepare;
use crate::process::Process;

/// How long a server may take to become ready.
const PATIENCE: Duration = Duration::from_secs(120);

/// What can be started.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(super) enum Kind {
    /// `innkeeper up` with one worker that does both, on all cores.
    Mixed,
    /// `innkeeper up --processes` with a prefill and a decode worker whose engines take no time.
    Apart,
    /// `llama-server`.
    Llama,
    /// Dynamo's frontend and KV router, with a prefill and a decode worker whose engines take as good as no time.
    Dynamo,
}

/// How much a server must have room for.
#[derive(Copy, Clone, Debug)]
pub(super) struct Size {
    /// Answers at a time.
    pub(super) streams: usize,
    /// Tokens of each, its prompt included.
    pub(super) tokens: usize,
}

/// A server that runs.
pub(super) struct Server {
    /// Where it answers.
    pub(super) to: SocketAddr,
    /// What it calls its model.
    pub(super) model: String,
    /// Which version it is, and how it is set up.
    pub(super) settings: String,
    /// Its processes; they may have children.
    families: Vec<u32>,
    alive: Alive,
}

/// What ends a server when it is dropped.
enum Alive {
    Ours(Box<Cluster>),
    Theirs {
        processes: Vec<Process>,
        _folder: TempDir,
    },
}

impl Kind {
    /// As it is called in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mixed | Self::Apart => "innkeeper",
            Self::Llama => "llama.cpp",
            Self::Dynamo => "Dynamo",
        }
    }

    /// Starts one and waits until it answers, or says why not. `peers` is where those that are not ours have been built.
    ///
    /// # Panics
    /// If ours does not start.
    pub(super) async fn start(self, size: Size, peers: &Path) -> Result<Server, String> {
        match self {
            Self::Mixed => Ok(ours::mixed(size).await),
            Self::Apart => Ok(ours::apart(size, &[]).await),
            Self::Llama => llama::start(size, peers).await,
            Self::Dynamo => dynamo::start(size, peers).await,
        }
    }
}

/// Where peers are built unless somebody says otherwise.
pub(super) fn peers() -> PathBuf {
    prepare::target().join("peers")
}

impl Server {
    /// What it has used so far.
    pub(super) fn usage(&self) -> Usage {
        Usage::of(&self.families)
    }

    /// A load for it, to be changed.
    pub(super) fn load(&self) -> Load {
        Load::new(self.to, &self.model)
    }

    /// Ours, for what only it can be asked.
    ///
    /// # Panics
    /// If it is not.
    pub(super) fn cluster(&self) -> &Cluster {
        match &self.alive {
            Alive::Ours(cluster) => cluster,
            Alive::Theirs { .. } => panic!("not ours"),
        }
    }

    fn theirs(
        to: SocketAddr,
        model: &str,
        settings: String,
        processes: Vec<Process>,
        folder: TempDir,
    ) -> Self {
        Self {
            to,
            model: model.to_owned(),
            settings,
            families: processes.iter().map(Process::id).collect(),
            alive: Alive::Theirs {
                processes,
                _folder: folder,
            },
        }
    }

    /// Waits until it has answered a request; else says what its processes said last.
    async fn ready(mut self, health: &str) -> Result<Self, String> {
        let started = Instant::now();
        let mut last = String::new();
        while started.elapsed() < PATIENCE {
            if let Alive::Theirs { processes, .. } = &mut self.alive {
                for process in processes {
                    if process.is_lost() {
                        return Err(format!("{} ended: {}", process.name(), tail(&process.log())));
                    }
                }
            }
            match self.answers(health).await {
                Ok(()) => return Ok(self),
                Err(error) => last = error,
            }
            sleep(Duration::from_millis(100)).await;
        }
        Err(format!("not ready after {} s: {last}", PATIENCE.as_secs()))
    }

    async fn answers(&self, health: &str) -> Result<(), String> {
        let health = get(self.to, health).await?;
        if health.status != 200 {
            return Err(format!("health: {}", health.status));
        }
        let request = json!({ "model": self.model, "prompt": "time", "max_tokens": 1 });
        let answer = post(self.to, "/v1/completions", &request).await?;
        let status = answer.status;
        let text = answer.text().await?;
        if status == 200 {
            Ok(())
        } else {
            Err(format!("{status}: {text}"))
        }
    }
}

/// The end of a log, as one line.
fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().rev().take(3).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
}
