//! `up --processes`: the gateway and every worker as a process of its own.
//!
//! Each child holds the reading end of a pipe whose writing end is ours, and stops when it closes: however this process ends, no
//! child outlives it. A child that dies is reported and not replaced, so that one can watch what its death does.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use tempfile::TempDir;
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{info, warn};

use crate::cli::UpArgs;
use crate::config::{Config, ENVIRONMENT, WorkerRole};
use crate::signals::Signals;
use crate::{compose, ports, ready};

/// How long a child may take beyond its own grace: a worker's farewell has bounds of its own.
const BEYOND: Duration = Duration::from_secs(10);

/// One child and the pipe that keeps it alive.
struct Process {
    name: String,
    child: Child,
    lifeline: Option<ChildStdin>,
}

/// All of them, while they run.
struct Family {
    lifelines: Vec<Option<ChildStdin>>,
    waits: JoinSet<(String, String)>,
}

/// Runs the cluster until a signal comes or the gateway ends.
pub(crate) async fn up(config: &Config, args: &UpArgs, stops_with_stdin: bool) -> Result<()> {
    args.check()?;
    // Mistakes are told once, here, and not by every child.
    ports::check(config)?;
    let mut own = config.clone();
    own.mesh.gateways = vec![compose::reachable(config)];
    compose::check_worker_settings(&own)?;
    // Fetched once, here, where a progress bar can be seen; the children find both in the cache.
    let opened = compose::open_model(config).await?;
    compose::check_worker(&own, opened.file())?;
    let served = compose::served_name(config, &opened);
    drop(opened);
    if args.prefill > 0 || args.decode > 0 {
        compose::ucx(config).await?;
    }
    let folder = TempDir::with_prefix("innkeeper-").context("a folder for configurations")?;
    let mut children = Vec::new();
    children.push(spawn(&own, folder.path(), "gateway-0", &["gateway"])?);
    for (role, count) in args.workers() {
        let role = role_name(role);
        for index in 0..count {
            let name = format!("{role}-{index}");
            children.push(spawn(&own, folder.path(), &name, &["worker", "--role", &role])?);
        }
    }
    let mut signals = Signals::listen();
    let mut family = Family::new(children);
    let watched = family
        .watch(config, &served, &mut signals, stops_with_stdin)
        .await;
    let ended = match watched {
        Ok(()) => signals.orderly(family.end(config)).await,
        failed => failed,
    };
    // Kills who is left.
    family.waits.shutdown().await;
    ended
}

fn role_name(role: WorkerRole) -> String {
    let value = role.to_possible_value();
    value.map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Writes the configuration down for a child and starts it.
fn spawn(config: &Config, folder: &Path, name: &str, arguments: &[&str]) -> Result<Process> {
    let mut own = config.clone();
    own.node.name = name.to_owned();
    // They would all want the same one.
    own.admin.worker.set_port(0);
    let file = folder.join(format!("{name}.toml"));
    std::fs::write(&file, own.to_toml()?).with_context(|| format!("cannot write {}", file.display()))?;
    let variables = std::env::vars_os().map(|(name, _)| name);
    let mut command = command(&file, arguments, variables)?;
    let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
    let lifeline = child.stdin.take();
    Ok(Process {
        name: name.to_owned(),
        child,
        lifeline,
    })
}

/// This program with another configuration, which nothing in the environment changes: it is in there already.
fn command(file: &Path, arguments: &[&str], variables: impl Iterator<Item = OsString>) -> Result<Command> {
    let program = std::env::current_exe().context("where is this program's own file?")?;
    let mut command = Command::new(program);
    for name in variables.filter(|name| name.to_string_lossy().starts_with(ENVIRONMENT)) {
        command.env_remove(name);
    }
    command
        .arg("--config")
        .arg(file)
        .arg("--stop-with-stdin")
        .args(arguments)
        .stdin(Stdio::piped())
        .kill_on_drop(true);
    Ok(command)
}

impl Family {
    fn new(children: Vec<Process>) -> Self {
        let mut lifelines = Vec::new();
        let mut waits = JoinSet::new();
        for process in children {
            let Process {
                name,
                mut child,
                lifeline,
            } = process;
            info!(name, pid = child.id(), "started");
            lifelines.push(lifeline);
            // No deadline: raced against the signals, and ended with the set.
            waits.spawn(async move {
                let ended = child.wait().await;
                (
                    name,
                    ended.map_or_else(|error| error.to_string(), |status| status.to_string()),
                )
            });
        }
        Self { lifelines, waits }
    }

    /// Waits for the cluster to be ready, then for the signal to stop.
    async fn watch(
        &mut self,
        config: &Config,
        served: &str,
        signals: &mut Signals,
        stops_with_stdin: bool,
    ) -> Result<()> {
        let announced = ready::announce(config, served);
        let told = signals.next_or_end_of(stops_with_stdin);
        tokio::pin!(announced, told);
        let mut is_ready = false;
        loop {
            tokio::select! {
                biased;
                () = &mut told => return Ok(()),
                ready = &mut announced, if !is_ready => { ready?; is_ready = true; }
                Some(Ok((name, ended))) = self.waits.join_next() => {
                    if name.starts_with("gateway") || !is_ready {
                        bail!("{name} ended ({ended}); if it could say why, that is above");
                    }
                    warn!(name, ended, "a worker ended; the cluster goes on without it");
                }
            }
        }
    }

    /// Tells all of them to stop, and waits for that.
    async fn end(&mut self, config: &Config) {
        self.lifelines.clear();
        let grace = Duration::from_millis(config.limits.shutdown_ms) + BEYOND;
        let all = async { while self.waits.join_next().await.is_some() {} };
        if timeout(grace, all).await.is_err() {
            warn!("not every process ended within its grace; the rest is killed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Else a variable would win over what a flag had set, and every child would have the same name.
    #[tokio::test]
    async fn a_child_hears_nothing_of_our_variables() {
        let variables = ["INNKEEPER_NODE__NAME", "INNKEEPER_CONFIG", "PATH", "UCX_TLS"];
        let variables = variables.into_iter().map(OsString::from);
        let command = command(Path::new("child.toml"), &["gateway"], variables).expect("a command");
        let removed = command.as_std().get_envs().filter(|(_, value)| value.is_none());
        let removed: Vec<_> = removed.map(|(name, _)| name).collect();
        assert_eq!(removed, ["INNKEEPER_CONFIG", "INNKEEPER_NODE__NAME"]);
    }
}
