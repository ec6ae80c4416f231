//! Whether the actors of a node go on: a message goes through all of them, and its answer comes back or does not. No peer has a part in it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ractor::RpcReplyPort;
use ractor::concurrency::oneshot;
use tokio::time::{Instant, timeout_at};

/// Asks a part of the node to answer when it comes to it.
type Ask = Arc<dyn Fn(RpcReplyPort<()>) + Send + Sync>;

/// The parts of a node that have to go on. Cheap to clone.
#[derive(Clone, Default)]
pub struct Vitals(Arc<Mutex<Vec<(String, Ask)>>>);

impl Vitals {
    pub(crate) fn add(&self, name: String, ask: Ask) {
        self.lock().push((name, ask));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(String, Ask)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The parts that have not answered within `patience`. One that has ended answers at once: that is its supervisor's business.
    pub async fn silent(&self, patience: Duration) -> Vec<String> {
        let until = Instant::now() + patience;
        let parts = self.lock().clone();
        let asked = parts.into_iter().map(|(name, ask)| {
            let (reply, answer) = oneshot();
            ask(RpcReplyPort::from(reply));
            (name, answer)
        });
        // All are asked before the first is waited for.
        let asked: Vec<_> = asked.collect();
        let mut silent = Vec::new();
        for (name, answer) in asked {
            if timeout_at(until, answer).await.is_err() {
                silent.push(name);
            }
        }
        silent
    }
}

impl std::fmt::Debug for Vitals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vitals").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::Vitals;

    #[tokio::test]
    async fn whoever_keeps_the_question_is_silent() {
        let vitals = Vitals::default();
        let kept = Arc::new(Mutex::new(Vec::new()));
        let keeps = Arc::clone(&kept);
        vitals.add(
            "answers".to_owned(),
            Arc::new(|reply| reply.send(()).unwrap_or_default()),
        );
        vitals.add(
            "keeps".to_owned(),
            Arc::new(move |reply| keeps.lock().unwrap().push(reply)),
        );
        vitals.add("is gone".to_owned(), Arc::new(drop));
        assert_eq!(vitals.silent(Duration::from_millis(20)).await, ["keeps"]);
        assert_eq!(kept.lock().unwrap().len(), 1);
    }
}
