//! What all actors of a gateway share. Each part has its own short lock; nobody holds one across a wait.

use std::sync::Arc;

use ractor::ActorRef;
use room::Limits;
use tracing::warn;

use super::board::Board;
use super::directory::Directory;
use super::fabric::Fabric;
use super::placement::PlacementMessage;
use super::watch::Watch;
use crate::clock::Clock;

/// Names a request within its gateway's incarnation: what the supervisor's timers are keyed by.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub(crate) struct RequestId(pub(crate) u64);

/// The parts.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    pub(crate) directory: Arc<Directory>,
    pub(crate) fabric: Arc<Fabric>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) board: Arc<Board>,
    pub(crate) placement: ActorRef<PlacementMessage>,
    /// What a test has in store for heirs.
    #[cfg(feature = "faults")]
    pub(crate) doom: super::request::Doom,
}

impl Shared {
    /// Tells the desk. If its actor is gone the gateway's supervisor is about to start everything anew, and the room's own deadline
    /// holds.
    pub(crate) fn place(&self, message: PlacementMessage) {
        if let Err(error) = self.placement.cast(message) {
            warn!(%error, "the placement actor takes no message");
        }
    }
}
