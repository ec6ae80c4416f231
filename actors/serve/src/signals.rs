//! What ends a process from outside.

use tokio::io::AsyncReadExt;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for an interrupt or a request to terminate. No deadline: it is raced against the work.
pub(crate) async fn stop() {
    let mut interrupt = listen(SignalKind::interrupt());
    let mut terminate = listen(SignalKind::terminate());
    tokio::select! {
        biased;
        () = arrives(interrupt.as_mut()) => {}
        () = arrives(terminate.as_mut()) => {}
    }
}

/// Waits until standard input is closed: the parent that started this process is gone or wants it to stop.
pub(crate) async fn parent_gone() {
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
