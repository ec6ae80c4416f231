//! Work that may block, kept off the threads that serve.
//!
//! A runtime of one thread has no others that could be held up or could help: there such work is done in place, and everything happens
//! in one order. Simulations live on that.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs `work` beside the runtime's threads. An error is what it panicked with.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    if is_single_threaded() {
        return Ok(work());
    }
    // What ends it is up to the work, and to whoever bounds this wait.
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|panic| panic.to_string())
}

/// Whether this runs within a runtime of one thread.
pub(crate) fn is_single_threaded() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::CurrentThread)
}
