//! What a worker has to tell its gateways. Tokens of one engine step go out as one frame per gateway, however many rooms they
//! belong to; everything else goes at once, behind the tokens that came before it.

use std::collections::BTreeMap;

use mesh::{Link, LinkId, SendError};
use observe::{NodeEvent, NodeWhat, Recorder};
use room::NodeId;
use wire::{RoomTokens, ToGateway};

use crate::clock::Clock;

struct Peer {
    link: Link<ToGateway>,
    tokens: Vec<RoomTokens>,
}

/// The links of a worker, by gateway incarnation, with the tokens not yet sent.
pub(crate) struct Outbox {
    peers: BTreeMap<NodeId, Peer>,
    says: Says,
}

/// Tells of frames that cannot be sent.
struct Says {
    recorder: Recorder,
    clock: Clock,
}

impl Outbox {
    pub(crate) fn new(recorder: Recorder, clock: Clock) -> Self {
        Self {
            peers: BTreeMap::new(),
            says: Says { recorder, clock },
        }
    }

    /// A link that is there already is ended: a gateway has one.
    pub(crate) fn up(&mut self, gateway: NodeId, link: Link<ToGateway>) {
        let tokens = Vec::new();
        if let Some(older) = self.peers.insert(gateway, Peer { link, tokens }) {
            older.link.close("replaced by a newer link");
        }
    }

    /// Forgets a link that is over; `false` if another has taken its place.
    pub(crate) fn down(&mut self, link: LinkId) -> bool {
        let current = self.is_current(link);
        if current {
            self.peers.remove(&NodeId(link.epoch));
        }
        current
    }

    /// Whether it is the link of its gateway.
    pub(crate) fn is_current(&self, link: LinkId) -> bool {
        let peer = self.peers.get(&NodeId(link.epoch));
        peer.is_some_and(|peer| peer.link.id() == link)
    }

    pub(crate) fn gateways(&self) -> usize {
        self.peers.len()
    }

    /// Adds tokens to the next frame.
    pub(crate) fn tokens(&mut self, gateway: NodeId, tokens: RoomTokens) {
        if let Some(peer) = self.peers.get_mut(&gateway) {
            peer.tokens.push(tokens);
        }
    }

    /// Sends a frame, behind the tokens gathered so far. Without a link it is dropped: the gateway has drawn its own conclusion.
    pub(crate) fn send(&mut self, gateway: NodeId, frame: &ToGateway) {
        if let Some(peer) = self.peers.get_mut(&gateway) {
            peer.flush(&self.says);
            peer.send(frame, &self.says);
        }
    }

    /// Sends a frame that a gateway can do without: where it cannot be sent, that is no reason to say or to end anything. To one of an
    /// older version it cannot.
    pub(crate) fn mention(&mut self, gateway: NodeId, frame: &ToGateway) {
        if let Some(peer) = self.peers.get_mut(&gateway) {
            peer.flush(&self.says);
            let _ = peer.link.send(frame);
        }
    }

    /// Sends a frame to every gateway.
    pub(crate) fn send_all(&mut self, frame: &ToGateway) {
        for peer in self.peers.values_mut() {
            peer.flush(&self.says);
            peer.send(frame, &self.says);
        }
    }

    /// Sends all gathered tokens.
    pub(crate) fn flush(&mut self) {
        for peer in self.peers.values_mut() {
            peer.flush(&self.says);
        }
    }
}

impl Peer {
    fn flush(&mut self, says: &Says) {
        if !self.tokens.is_empty() {
            let batch = std::mem::take(&mut self.tokens);
            self.send(&ToGateway::Tokens { batch }, says);
        }
    }

    /// A full queue means a gateway that does not read: the link is ended, so that both sides draw the same conclusion.
    fn send(&self, frame: &ToGateway, says: &Says) {
        match self.link.send(frame) {
            Ok(()) | Err(SendError::Down) => {}
            Err(error @ SendError::Invalid(_)) => {
                let gateway = NodeId(self.link.id().epoch);
                let why = error.to_string().into();
                let what = NodeWhat::FrameNotSent { gateway, why };
                let at = says.clock.now();
                says.recorder.node(&NodeEvent { at, what });
            }
            Err(error @ SendError::Full { .. }) => self.link.close(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
