//! Where links meet the gateway: judges workers, sends digests, and brings what workers say to those concerned.
//!
//! Everything here runs where frames are read, and never blocks: news of a room goes into its request's inbox, capacity to the desk.

use std::collections::BTreeSet;
use std::sync::Arc;

use mesh::{DownReason, GatewayLinks, GatewaySide, Link, LinkEvent, LinkId};
use observe::{Moved, NodeWhat, RoomWhat};
use room::{Generation, NodeId, RoomId, WorkerSpec};
use wire::{Held, Hello, RoomKey, ToGateway, ToWorker, WorkerStats};

use super::directory::News;
use super::peers::{LinkBoard, Peer};
use super::placement::PlacementMessage;
use super::shared::Shared;
use crate::convert;

/// What links are connected to.
pub(crate) struct Links {
    pub(crate) model: String,
    pub(crate) board: Arc<LinkBoard>,
    pub(crate) shared: Arc<Shared>,
}

impl GatewayLinks for Links {
    /// All workers of a gateway serve its model, with blocks of one layout.
    fn accept(&self, hello: &Hello) -> Result<(), String> {
        if hello.model != self.model {
            return Err(format!("it serves {}, this gateway {}", hello.model, self.model));
        }
        self.board.judge(hello)
    }

    fn beat(&self, link: &Link<ToWorker>, n: u64) {
        self.shared.fabric.beat(NodeId(link.id().epoch), n);
    }

    fn event(&self, event: LinkEvent<GatewaySide>) {
        match event {
            LinkEvent::Up { link, peer } => self.up(&link, peer),
            LinkEvent::Frame { link, frame, .. } => self.frame(link, frame),
            LinkEvent::Down { link, why } => self.down(link, &why),
        }
    }
}

impl Links {
    fn up(&self, link: &Link<ToWorker>, hello: Hello) {
        let node = NodeId(hello.epoch);
        // A gateway among the workers was refused with its certificate.
        let Some(role) = convert::role_from_wire(hello.role) else {
            return;
        };
        let spec = WorkerSpec {
            role,
            blocks: hello.blocks,
            block_tokens: hello.block_tokens,
            slots: hello.slots,
        };
        let peer = Peer::new(hello, self.shared.clock.now());
        let (worker, name) = (node, peer.name.as_str().into());
        if let Err(why) = self.board.admit(link.id(), peer) {
            self.shared.node(NodeWhat::WorkerRefused {
                worker,
                name,
                why: why.as_str().into(),
            });
            return link.close(why);
        }
        self.shared.node(NodeWhat::WorkerLinked {
            worker,
            name,
            role,
            blocks: spec.blocks,
            block_tokens: spec.block_tokens,
            slots: spec.slots,
        });
        self.shared.fabric.up(node, link.clone());
        self.shared.place(PlacementMessage::WorkerUp(node, spec));
    }

    /// Whatever the worker held ends with its link: it sees the same end, or the end of its lease.
    fn down(&self, link: LinkId, why: &DownReason) {
        // One that was not taken in has nothing.
        let Some(Peer { name, node, .. }) = self.board.remove(link) else {
            return;
        };
        self.shared.node(NodeWhat::WorkerUnlinked {
            worker: node,
            name: name.into(),
            end: convert::link_end(why),
            why: why.to_string().into(),
        });
        self.shared.place(PlacementMessage::WorkerDown(node));
        self.shared.fabric.down(node, |key| {
            // One that ends by itself has said why; of any other there is only the end of its link.
            if let DownReason::PeerClosed(why) = why {
                self.said(node, key, why);
            }
        });
    }

    fn frame(&self, link: LinkId, frame: ToGateway) {
        let from = NodeId(link.epoch);
        let (key, news) = match frame {
            ToGateway::HeartbeatAck { n, held, stats } => return self.heartbeat(link, n, held, stats),
            ToGateway::Tokens { batch } => return self.tokens(from, batch),
            ToGateway::Leaving { reason } => return self.leaving(link, &reason),
            ToGateway::About { admin } => return self.about(link, &admin),
            ToGateway::Ordered { n, refused } => {
                return self.board.orders.answered(from, n, refused.map_or(Ok(()), Err));
            }
            ToGateway::Reason { key, why } => return self.reason(from, key, &why),
            ToGateway::Reserved { key, cached_blocks } => (key, self.reserved(link, cached_blocks)),
            // The leg stays until the next digest: a room that does not take the refusal for proof gets it there.
            ToGateway::Refused { key, why } => {
                self.shared.fabric.over(from, key);
                (key, News::Refused(convert::refusal_from_wire(why)))
            }
            ToGateway::Progress { key, positions } => (key, News::Progress { positions }),
            ToGateway::Published { key, ticket } => (key, News::Published(ticket)),
            ToGateway::Pulled {
                key,
                bytes,
                descriptors,
                micros,
                transport,
            } => {
                let lasted = room::Span { micros };
                self.moved(from, key, (bytes, descriptors), lasted, &transport);
                (key, News::Pulled)
            }
            ToGateway::Failed { key, why } => {
                self.shared.fabric.over(from, key);
                (key, News::Failed(convert::attempt_error_from_wire(why)))
            }
            ToGateway::Closed { key } => {
                self.shared.fabric.proven(from, key);
                (key, News::Closed)
            }
        };
        self.news(from, key, news);
    }

    fn room(&self, key: RoomKey) -> RoomId {
        RoomId {
            gateway: self.shared.fabric.gateway(),
            seq: key.seq,
        }
    }

    /// Why an attempt fails at a worker that has a part in it: told before the failure is, which comes next.
    fn reason(&self, from: NodeId, key: RoomKey, why: &str) {
        if self.shared.fabric.has_leg(from, key) {
            self.said(from, key, why);
        }
    }

    fn said(&self, worker: NodeId, key: RoomKey, why: &str) {
        let (generation, why) = (Generation(key.generation), convert::words(why).into());
        self.shared.happened(self.room(key), |_| RoomWhat::WorkerSaid {
            worker,
            generation,
            why,
        });
    }

    /// Told of every pull, though its room may not wait for it any more: the bytes were moved.
    fn moved(&self, by: NodeId, key: RoomKey, size: (u64, u32), lasted: room::Span, transport: &str) {
        self.shared.happened(self.room(key), |known| {
            // A pull has one source, and an attempt one route.
            let route = known.state().route.filter(|route| route.decode == by);
            RoomWhat::Moved(Moved {
                from: route.map_or(by, |route| route.prefill),
                to: by,
                bytes: size.0,
                descriptors: size.1,
                lasted,
                transport: transport.into(),
            })
        });
    }

    fn news(&self, from: NodeId, key: RoomKey, news: News) {
        self.shared.directory.news(from, key, news);
    }

    fn reserved(&self, link: LinkId, cached_blocks: u32) -> News {
        let block_tokens = self.board.at(link, |peer| peer.layout.block_tokens);
        News::Reserved {
            cached_blocks,
            cached_tokens: cached_blocks.saturating_mul(block_tokens.unwrap_or_default()),
        }
    }

    fn tokens(&self, from: NodeId, batch: Vec<wire::RoomTokens>) {
        for room in batch {
            if room.finish.is_some() {
                self.shared.fabric.over(from, room.key);
            }
            let news = News::Tokens {
                from: room.from,
                tokens: room.tokens,
                finish: room.finish.map(convert::finish_from_wire),
            };
            self.news(from, room.key, news);
        }
    }

    fn heartbeat(&self, link: LinkId, n: u64, held: Vec<Held>, stats: WorkerStats) {
        let (node, now) = (NodeId(link.epoch), self.shared.clock.now());
        self.shared.recorder.roster().heard(node, now);
        let keys: BTreeSet<_> = held.iter().map(|held| held.key).collect();
        let advert = self.board.at(link, |peer| {
            peer.stats = stats;
            peer.held = held;
            peer.reported = Some(now);
            peer.advert()
        });
        if let Some(advert) = advert {
            self.shared.place(PlacementMessage::Advertise(node, advert));
        }
        self.shared.fabric.digest_answered(node, n, &keys);
    }

    fn about(&self, link: LinkId, admin: &str) {
        // Nothing else comes through the wire.
        self.board.at(link, |peer| peer.admin = admin.parse().ok());
    }

    /// Nothing new goes there from now on: not only from its next heartbeat on.
    fn leaving(&self, link: LinkId, reason: &str) {
        let node = NodeId(link.epoch);
        let left = self.board.at(link, |peer| {
            peer.stats.draining = true;
            (peer.name.clone(), peer.advert())
        });
        if let Some((name, advert)) = left {
            self.shared.node(NodeWhat::WorkerLeaving {
                worker: node,
                name: name.into(),
                why: reason.into(),
            });
            self.shared.place(PlacementMessage::Advertise(node, advert));
        }
    }
}

#[cfg(test)]
mod tests;
