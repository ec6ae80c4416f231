//! What all actors of a gateway share. Each part has its own short lock; nobody holds one across a wait.

use std::sync::Arc;

use observe::{Recorder, Text};
use ractor::ActorRef;
use room::{AbortBy, Input, Limits};
use tracing::debug;

use super::board::Board;
use super::directory::{Directory, Mail};
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
    pub(crate) recorder: Recorder,
    /// The model that is served.
    pub(crate) model: Text,
    pub(crate) placement: ActorRef<PlacementMessage>,
    /// What a test has in store for heirs.
    #[cfg(feature = "faults")]
    pub(crate) doom: super::request::Doom,
}

impl Shared {
    /// Tells the desk. One that is gone takes the gateway with it, and that is said there.
    pub(crate) fn place(&self, message: PlacementMessage) {
        if let Err(error) = self.placement.cast(message) {
            debug!(%error, "the placement actor takes no message");
        }
    }

    /// Ends every room that is open, because the gateway is about to end.
    pub(crate) fn end_all(&self) {
        for view in self.board.open() {
            // One that has ended meanwhile has its outcome.
            let end = Mail::Input(Input::Abort(AbortBy::Shutdown));
            self.directory.deliver(view.room.seq, end);
        }
    }
}
