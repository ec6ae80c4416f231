//! Places for work that keeps a thread busy: beside the runtime's threads, so many at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// The places.
pub(super) struct Places(Arc<Semaphore>);

/// Why there is nothing to show.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(super) enum Undone {
    /// It took longer than anybody waits.
    TooLate,
    /// The work panicked.
    Failed,
}

impl Places {
    pub(super) fn new(at_once: usize) -> Self {
        Self(Arc::new(Semaphore::new(at_once)))
    }

    /// Does the work when there is a place. Work that has begun cannot be ended, and keeps its place: whoever asks again and again
    /// with little patience gets no more places by that.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        patience: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Undone> {
        let places = Arc::clone(&self.0);
        let done = async {
            let place = places.acquire_owned().await.map_err(|_| Undone::Failed)?;
            let working = spawn_blocking(move || {
                let done = work();
                drop(place);
                done
            });
            working.await.map_err(|_| Undone::Failed)
        };
        timeout(patience, done).await.unwrap_or(Err(Undone::TooLate))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[tokio::test]
    async fn work_that_nobody_waits_for_any_more_keeps_its_place() {
        let places = Places::new(1);
        let (go, wait) = sync_channel::<()>(1);
        let waits = move || wait.recv().is_ok();
        assert_eq!(
            places.run(Duration::from_millis(20), waits).await,
            Err(Undone::TooLate)
        );
        assert_eq!(
            places.run(Duration::from_millis(20), || true).await,
            Err(Undone::TooLate)
        );
        go.send(()).expect("it still waits");
        assert_eq!(places.run(Duration::from_secs(60), || true).await, Ok(true));
        let fails = || assert_eq!("this", "that");
        assert_eq!(
            places.run(Duration::from_secs(60), fails).await,
            Err(Undone::Failed)
        );
        assert_eq!(places.run(Duration::from_secs(60), || true).await, Ok(true));
    }
}
