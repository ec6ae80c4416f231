//! Work that may block, kept off the threads that serve.
//!
//! A runtime of one thread has no others that could be held up or could help: there such work is done in place, and everything happens
//! in one order. Simulations live on that.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs `work` beside the runtime's threads. An error says that it panicked.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    if is_single_threaded() {
        return catch_unwind(AssertUnwindSafe(work)).map_err(|_| "it panicked".to_owned());
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

#[cfg(test)]
mod tests {
    use super::blocking;

    async fn check() {
        assert_eq!(blocking(|| 7).await, Ok(7));
        let panicked = blocking(|| -> u32 { panic!("a test's panic") }).await;
        assert!(panicked.is_err_and(|why| why.contains("panicked")));
    }

    #[tokio::test]
    async fn a_panic_is_an_error_in_place() {
        check().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_panic_is_an_error_beside() {
        check().await;
    }
}
