//! What a worker is called in an account: as it was when its room had to do with it.

use room::NodeId;

use super::{Known, Standing};
use crate::event::Text;
use crate::history::RoomHistory;

/// The names in one room's account.
#[derive(Copy, Clone)]
pub(super) struct Names<'a> {
    of_history: &'a [(NodeId, Text)],
    peers: &'a [Known],
}

impl<'a> Names<'a> {
    pub(super) fn new(history: &'a RoomHistory, standing: &Standing<'a>) -> Self {
        Self {
            of_history: history.names(),
            peers: standing.peers,
        }
    }

    /// A worker that was never met has none but its incarnation's. Where a room has to do with a worker before and after its restart, the
    /// two are told apart.
    pub(super) fn of(&self, node: NodeId) -> String {
        let of_history = self.of_history.iter().find(|(known, _)| *known == node);
        let of_peer = self.peers.iter().find(|peer| peer.node == node);
        let Some(name) = of_history
            .map(|(_, name)| &**name)
            .or(of_peer.map(|peer| peer.name.as_str()))
        else {
            return format!("worker {node}");
        };
        // Incarnations ascend with time.
        let is_later = |(other, called): &(NodeId, Text)| *other > node && **called == *name;
        if self.of_history.iter().any(is_later) {
            return format!("{name} (since restarted, {node})");
        }
        name.to_owned()
    }
}
