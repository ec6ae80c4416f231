//! What a worker shows when it dials, and whom it believes: may be renewed while it runs.

use std::sync::{Arc, PoisonError, RwLock};

use quinn::ClientConfig;

/// A worker's certificate and the authorities it believes, as the next dial takes them. Cloning gives the same ones. Links that are up go on
/// with what they were made with.
#[derive(Clone, Debug)]
pub struct Credentials(Arc<RwLock<ClientConfig>>);

impl Credentials {
    /// Every dial from now on takes these.
    pub fn renew(&self, client: ClientConfig) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = client;
    }

    /// Those of now.
    pub(super) fn now(&self) -> ClientConfig {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl From<ClientConfig> for Credentials {
    fn from(client: ClientConfig) -> Self {
        Self(Arc::new(RwLock::new(client)))
    }
}
