//! What a worker has to tell its gateways. Tokens go out as one frame per gateway, however many rooms they belong to and however many
//! steps of the engine they come from, with one entry for each room; everything else goes at once, behind the tokens that came before it.

use std::collections::BTreeMap;

use mesh::{Link, LinkId, SendError};
use observe::{NodeEvent, NodeWhat, Recorder};
use room::NodeId;
use wire::{RoomKey, RoomTokens, ToGateway};

use crate::clock::Clock;
use crate::convert::count;

/// Tokens and entries after which a frame of them goes out at once. With all the log-probabilities that there can be, that is half of the
/// longest frame.
const ENTRIES: usize = 8_192;

struct Peer {
    link: Link<ToGateway>,
    tokens: Gathered,
}

/// Tokens that are not sent yet.
#[derive(Default)]
struct Gathered {
    batch: Vec<RoomTokens>,
    /// Where in it the last entry of a room is.
    last: BTreeMap<RoomKey, usize>,
    /// Entries, and tokens in them.
    entries: usize,
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
        let tokens = Gathered::default();
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
            peer.tokens.add(tokens);
            if peer.tokens.entries >= ENTRIES {
                peer.flush(&self.says);
            }
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

impl Gathered {
    /// Lengthens the room's entry by what follows it; anything else is an entry of its own.
    fn add(&mut self, more: RoomTokens) {
        self.entries += more.tokens.len();
        let place = self.last.get(&more.key).copied();
        let last = place.and_then(|place| self.batch.get_mut(place));
        match last.filter(|last| follows(last, &more)) {
            Some(last) => {
                last.tokens.extend(more.tokens);
                last.finish = more.finish;
            }
            None => {
                self.entries += 1;
                self.last.insert(more.key, self.batch.len());
                self.batch.push(more);
            }
        }
    }

    fn take(&mut self) -> Vec<RoomTokens> {
        self.last.clear();
        self.entries = 0;
        std::mem::take(&mut self.batch)
    }
}

/// Whether `more` begins where `last` ends.
fn follows(last: &RoomTokens, more: &RoomTokens) -> bool {
    let end = last.from.saturating_add(count(last.tokens.len()));
    last.finish.is_none() && end == more.from
}

impl Peer {
    fn flush(&mut self, says: &Says) {
        if !self.tokens.batch.is_empty() {
            let batch = self.tokens.take();
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
