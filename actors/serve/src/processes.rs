//! `up --processes`: the gateway and every worker as a process of its own.
//!
//! Each child holds the reading end of a pipe whose writing end is ours, and stops when it closes: however this process ends, no
//! child outlives it. A child that dies is reported and not replaced, so that one can watch what its death does.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{info, warn};

use crate::cli::UpArgs;
use crate::config::Config;
use crate::{compose, paths, ready, signals};

/// One child and the pipe that keeps it alive.
struct Process {
    name: String,
    child: Child,
    lifeline: Option<ChildStdin>,
}

/// Where the children's configurations lie; removed with it.
struct Folder(PathBuf);

impl Folder {
    fn create(config: &Config) -> Result<Self> {
        let folder = paths::cache(config)?
            .join("run")
            .join(std::process::id().to_string());
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            warn!(folder = %self.0.display(), %error, "cannot be removed");
        }
    }
}

/// Runs the cluster until a signal comes or the gateway ends.
pub(crate) async fn up(config: &Config, args: &UpArgs) -> Result<()> {
    // Fetched once, here, where a progress bar can be seen; the children find both in the cache.
    let opened = compose::open_model(config).await?;
    let served = compose::served_name(config, &opened);
    drop(opened);
    if args.prefill + args.decode > 0 {
        compose::ucx(config).await?;
    }
    let folder = Folder::create(config)?;
    let mut own = config.clone();
    own.mesh.gateways = vec![compose::reachable(config)];
    let mut children = Vec::new();
    children.push(spawn(&own, &folder.0, "gateway-0", &["gateway"])?);
    for (role, count) in [
        ("prefill", args.prefill),
        ("decode", args.decode),
        ("mixed", args.mixed),
    ] {
        for index in 0..count {
            let name = format!("{role}-{index}");
            children.push(spawn(&own, &folder.0, &name, &["worker", "--role", role])?);
        }
    }
    for process in &children {
        info!(name = process.name, pid = process.child.id(), "started");
    }
    supervise(config, &served, children).await
}

/// Writes the configuration down for a child and starts it.
fn spawn(config: &Config, folder: &Path, name: &str, arguments: &[&str]) -> Result<Process> {
    let mut own = config.clone();
    own.node.name = name.to_owned();
    let file = folder.join(format!("{name}.toml"));
    std::fs::write(&file, own.to_toml()?).with_context(|| format!("cannot write {}", file.display()))?;
    let program = std::env::current_exe().context("where is this program's own file?")?;
    let mut child = Command::new(program)
        .arg("--config")
        .arg(&file)
        .arg("--stop-with-stdin")
        .args(arguments)
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {name}"))?;
    let lifeline = child.stdin.take();
    Ok(Process {
        name: name.to_owned(),
        child,
        lifeline,
    })
}

/// Waits for the cluster to be ready, then for its end.
async fn supervise(config: &Config, served: &str, children: Vec<Process>) -> Result<()> {
    let mut lifelines = Vec::new();
    let mut waits = JoinSet::new();
    for Process {
        name,
        mut child,
        lifeline,
    } in children
    {
        lifelines.push(lifeline);
        waits.spawn(async move {
            let ended = child.wait().await;
            (name, ended)
        });
    }
    let announced = ready::announce(config, served);
    let stop = signals::stop();
    tokio::pin!(announced, stop);
    let mut is_ready = false;
    loop {
        tokio::select! {
            biased;
            () = &mut stop => break,
            ready = &mut announced, if !is_ready => { ready?; is_ready = true; }
            Some(Ok((name, ended))) = waits.join_next() => {
                let ended = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
                if name.starts_with("gateway") || !is_ready {
                    bail!("{name} ended: {ended}");
                }
                warn!(name, ended, "a worker ended; the cluster goes on without it");
            }
        }
    }
    drop(lifelines);
    let grace = Duration::from_millis(config.limits.shutdown_ms);
    let all = async { while waits.join_next().await.is_some() {} };
    if timeout(grace, all).await.is_err() {
        warn!("not every process ended within its grace; the rest is killed");
    }
    Ok(())
}
