//! What ends a process from outside.

use std::future::Future;

use anyhow::{Result, bail};
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Interrupts and requests to terminate, heard from now on: before, each ends the process at once.
pub(crate) struct Signals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
}

impl Signals {
    pub(crate) fn listen() -> Self {
        Self {
            interrupt: listen(SignalKind::interrupt()),
            terminate: listen(SignalKind::terminate()),
        }
    }

    /// Waits for the next one. No deadline: it is raced against the work.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            biased;
            () = arrives(self.interrupt.as_mut()) => {}
            () = arrives(self.terminate.as_mut()) => {}
        }
    }

    /// As [`Signals::next`]; with `stdin` also for the end of standard input.
    pub(crate) async fn next_or_end_of(&mut self, stdin: bool) {
        if !stdin {
            return self.next().await;
        }
        tokio::select! {
            biased;
            () = self.next() => {}
            () = parent_gone() => {}
        }
    }

    /// Ends in order, which `ending` bounds; or at once when told a second time.
    ///
    /// # Errors
    /// If it was told a second time.
    pub(crate) async fn orderly(&mut self, ending: impl Future<Output = ()>) -> Result<()> {
        tokio::select! {
            biased;
            () = self.next() => bail!("told to stop a second time: ended at once"),
            () = ending => Ok(()),
        }
    }
}

/// Waits until standard input is closed: the parent that started this process is gone or wants it to stop.
async fn parent_gone() {
    let mut stdin = tokio::io::stdin();
    let mut rest = [0; 64];
    while matches!(stdin.read(&mut rest).await, Ok(n) if n > 0) {}
}

/// A process that cannot listen for a signal is ended by it the hard way.
fn listen(kind: SignalKind) -> Option<Signal> {
    match signal(kind) {
        Ok(signal) => Some(signal),
        Err(error) => {
            tracing::warn!(%error, ?kind, "cannot listen for a signal");
            None
        }
    }
}

async fn arrives(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}
