//! A load as a process of its own.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use super::plan::Load;
use super::report::Report;

/// What a load says when all its streams are open.
pub(in crate::bench) const ALL_OPEN: &str = "open";

/// A load that runs as a process of its own, killed when dropped.
pub(in crate::bench) struct Apart {
    _process: Child,
    said: Lines<BufReader<ChildStdout>>,
    patience: Duration,
    /// What has been read too early.
    last: Option<String>,
}

impl Apart {
    /// Starts it.
    ///
    /// # Panics
    /// If it cannot be started.
    pub(in crate::bench) fn start(load: &Load) -> Self {
        let own = std::env::current_exe().expect("this program has a file");
        let mut process = Command::new(own)
            .arg("load")
            .args(load.arguments())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("a load generator");
        let said = process.stdout.take().expect("its output is ours");
        Self {
            _process: process,
            said: BufReader::new(said).lines(),
            // It ends by itself: its silences have limits too.
            patience: Duration::from_secs_f64(load.seconds) + Duration::from_secs(600),
            last: None,
        }
    }

    /// Waits until all its streams are open; whether they ever are.
    pub(in crate::bench) async fn all_open(&mut self) -> bool {
        let line = self.line().await;
        let all_open = line == ALL_OPEN;
        self.last = (!all_open).then_some(line);
        all_open
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it does not end in order.
    pub(in crate::bench) async fn report(mut self) -> Report {
        loop {
            match self.line().await.as_str() {
                ALL_OPEN => {}
                line => return serde_json::from_str(line).expect("a report"),
            }
        }
    }

    async fn line(&mut self) -> String {
        if let Some(line) = self.last.take() {
            return line;
        }
        let line = timeout(self.patience, self.said.next_line()).await;
        let line = line.expect("a load has its limits").expect("its output");
        line.expect("a load ends with its report")
    }

    /// Runs a load to its end.
    pub(in crate::bench) async fn run(load: &Load) -> Report {
        Self::start(load).report().await
    }
}
