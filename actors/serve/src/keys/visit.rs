//! A request that came with a key, from its admission to the end of the last of its answers.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use room::Share;

use super::meter::Exceeded;
use super::ring::Holder;

tokio::task_local! {
    /// Of the request that is being handled. The layer stands outside the router, whose handlers know nothing of keys, and the service that
    /// they call, which charges for tokens, inside: all three are one future.
    static CURRENT: Arc<Visit>;
}

/// Counts as one request under way until it is dropped.
#[derive(Debug)]
pub(crate) struct Visit {
    holder: Arc<Holder>,
}

impl Visit {
    /// Lets the holder of a key have one more request, or says which limit is met.
    pub(super) fn admit(holder: Arc<Holder>, now: Instant) -> Result<Arc<Self>, Exceeded> {
        holder.meter().enter(now)?;
        Ok(Arc::new(Self { holder }))
    }

    /// Handles a request as a part of this visit.
    pub(super) async fn during<T>(self: Arc<Self>, handled: impl Future<Output = T>) -> T {
        CURRENT.scope(self, handled).await
    }

    /// Tokens that it has used.
    pub(crate) fn charge(&self, tokens: u32) {
        self.holder.meter().charge(tokens, Instant::now());
    }

    /// Whose turn it is when it waits.
    pub(crate) fn share(&self) -> Share {
        self.holder.share()
    }

    /// What blocks of its prompt are called by.
    pub(crate) fn salt(&self) -> u64 {
        self.holder.salt()
    }

    /// Resolves when its key is no longer good. No deadline: to be raced against the answer.
    pub(crate) async fn withdrawn(&self) {
        self.holder.withdrawn.cancelled().await;
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.holder.meter().leave();
    }
}

/// The visit that the request being handled is a part of; none where no keys are asked for.
pub(crate) fn current() -> Option<Arc<Visit>> {
    CURRENT.try_with(Arc::clone).ok()
}
