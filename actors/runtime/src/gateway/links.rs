//! Where links meet the gateway: judges workers, sends digests, and brings what workers say to those concerned.
//!
//! Everything here runs where frames are read, and never blocks: news of a room goes into its request's inbox, capacity to the desk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use mesh::{GatewayLinks, GatewaySide, Link, LinkEvent, LinkId};
use ractor::ActorRef;
use room::{Advert, NodeId, WorkerSpec};
use tracing::{info, warn};
use wire::{Held, Hello, Role, ToGateway, ToWorker, WorkerStats};

use super::board::Board;
use super::directory::{Directory, FromWorker, Mail, News};
use super::fabric::Fabric;
use super::placement::PlacementMessage;
use crate::convert;

/// A linked worker, as it said and as it last reported.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its incarnation.
    pub node: NodeId,
    /// Its name, for people.
    pub name: String,
    /// What it does.
    pub role: Role,
    /// Its KV layout: equal for all workers of a gateway.
    pub layout: Layout,
    /// Its last report.
    pub stats: WorkerStats,
    /// What it held for this gateway at its last report.
    pub held: Vec<Held>,
}

/// What two workers must have in common to exchange KV blocks.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct Layout {
    /// Tokens a block. Part of the hash too; here so that a difference can be named.
    pub block_tokens: u32,
    /// Names block shape, element type, weights and numerics.
    pub hash: u64,
}

impl Layout {
    fn of(hello: &Hello) -> Self {
        Self {
            block_tokens: hello.block_tokens,
            hash: hello.layout_hash,
        }
    }
}

/// All linked workers.
#[derive(Debug, Default)]
pub(crate) struct LinkBoard {
    peers: Mutex<BTreeMap<LinkId, Peer>>,
}

impl LinkBoard {
    fn with<R>(&self, f: impl FnOnce(&mut BTreeMap<LinkId, Peer>) -> R) -> R {
        f(&mut self.peers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn read(&self) -> Vec<Peer> {
        self.with(|peers| peers.values().cloned().collect())
    }
}

/// What links are connected to.
pub(crate) struct Links {
    pub(crate) model: String,
    pub(crate) board: Arc<LinkBoard>,
    pub(crate) rooms: Arc<Board>,
    pub(crate) directory: Arc<Directory>,
    pub(crate) fabric: Arc<Fabric>,
    pub(crate) placement: ActorRef<PlacementMessage>,
}

impl GatewayLinks for Links {
    /// All workers of a gateway serve its model, with blocks of one layout. The first worker decides the layout.
    fn accept(&self, hello: &Hello) -> Result<(), String> {
        if hello.model != self.model {
            return Err(format!("it serves {}, this gateway {}", hello.model, self.model));
        }
        self.board.with(|peers| same_layout(peers, Layout::of(hello)))
    }

    fn beat(&self, link: &Link<ToWorker>, n: u64) {
        self.fabric.beat(NodeId(link.id().epoch), n);
    }

    fn event(&self, event: LinkEvent<GatewaySide>) {
        match event {
            LinkEvent::Up { link, peer } => self.up(&link, peer),
            LinkEvent::Frame { link, frame, .. } => self.frame(link, frame),
            LinkEvent::Down { link, why } => {
                let node = NodeId(link.epoch);
                let name = self.board.with(|peers| peers.remove(&link)).map(|peer| peer.name);
                warn!(worker = name, %node, %why, "a worker's link is over: it is fenced");
                self.place(PlacementMessage::WorkerDown(node));
                self.fabric.down(node);
            }
        }
    }
}

fn same_layout(peers: &BTreeMap<LinkId, Peer>, layout: Layout) -> Result<(), String> {
    let Some(peer) = peers.values().find(|peer| peer.layout != layout) else {
        return Ok(());
    };
    let (name, other) = (&peer.name, peer.layout);
    if other.block_tokens != layout.block_tokens {
        let (its, theirs) = (layout.block_tokens, other.block_tokens);
        return Err(format!(
            "its KV blocks hold {its} tokens, those of {name} {theirs}: they must agree"
        ));
    }
    Err(format!(
        "its KV layout is {:016x}, that of {name} is {:016x}: element type, weights and numerics must agree",
        layout.hash, other.hash
    ))
}

impl Links {
    /// Judged once more, and under the lock that makes it count: two workers may have said hello at the same time.
    fn admit(&self, link: LinkId, peer: Peer) -> Result<(), String> {
        self.board.with(|peers| {
            same_layout(peers, peer.layout)?;
            peers.insert(link, peer);
            Ok(())
        })
    }

    fn up(&self, link: &Link<ToWorker>, hello: Hello) {
        let node = NodeId(hello.epoch);
        // A gateway among the workers was refused with its certificate.
        let Some(role) = convert::role_from_wire(hello.role) else {
            return;
        };
        info!(worker = hello.node, %node, role = %hello.role, blocks = hello.blocks, "a worker is linked");
        let spec = WorkerSpec {
            role,
            blocks: hello.blocks,
            block_tokens: hello.block_tokens,
            slots: hello.slots,
        };
        let layout = Layout::of(&hello);
        let peer = Peer {
            node,
            name: hello.node,
            role: hello.role,
            layout,
            stats: WorkerStats::default(),
            held: Vec::new(),
        };
        if let Err(why) = self.admit(link.id(), peer) {
            return link.close(why);
        }
        self.fabric.up(node, link.clone());
        self.place(PlacementMessage::WorkerUp(node, spec));
    }

    fn frame(&self, link: LinkId, frame: ToGateway) {
        let from = NodeId(link.epoch);
        match frame {
            ToGateway::HeartbeatAck { n, held, stats } => self.heartbeat(link, n, held, stats),
            ToGateway::Tokens { batch } => {
                for room in batch {
                    let finish = room.finish.map(convert::finish_from_wire);
                    self.news(
                        from,
                        room.key,
                        News::Tokens {
                            from: room.from,
                            tokens: room.tokens,
                            finish,
                        },
                    );
                }
            }
            ToGateway::Reserved { key, cached_blocks } => {
                self.news(from, key, News::Reserved { cached_blocks });
            }
            // The leg stays until the next digest: a room that does not take the refusal for proof gets it there.
            ToGateway::Refused { key, why } => {
                self.news(from, key, News::Refused(convert::refusal_from_wire(why)));
            }
            ToGateway::Progress { key, positions } => self.news(from, key, News::Progress { positions }),
            ToGateway::Published { key, ticket } => self.news(from, key, News::Published(ticket)),
            ToGateway::Pulled {
                key,
                bytes,
                descriptors,
                micros: _,
                transport,
            } => {
                self.rooms.pulled(&transport, bytes, descriptors);
                self.news(from, key, News::Pulled);
            }
            ToGateway::Failed { key, why } => {
                self.news(from, key, News::Failed(convert::attempt_error_from_wire(why)));
            }
            ToGateway::Closed { key } => {
                self.fabric.proven(from, key);
                self.news(from, key, News::Closed);
            }
            ToGateway::Leaving { reason } => info!(node = %from, reason, "a worker is leaving"),
        }
    }

    fn heartbeat(&self, link: LinkId, n: u64, held: Vec<Held>, stats: WorkerStats) {
        let node = NodeId(link.epoch);
        let keys: BTreeSet<_> = held.iter().map(|held| held.key).collect();
        let advert = Advert {
            available_blocks: stats.blocks_free.saturating_add(stats.blocks_cached),
            free_slots: stats.slots_total.saturating_sub(stats.slots_used),
            draining: stats.draining,
        };
        self.board.with(|peers| {
            if let Some(peer) = peers.get_mut(&link) {
                peer.stats = stats;
                peer.held = held;
            }
        });
        self.place(PlacementMessage::Advertise(node, advert));
        self.fabric.digest_answered(node, n, &keys);
    }

    /// A room that is gone has no use for news: they are dropped, and its worker hears so with the next digest.
    fn news(&self, from: NodeId, key: wire::RoomKey, news: News) {
        let frame = FromWorker {
            generation: key.generation,
            news,
        };
        self.directory.deliver(key.seq, Mail::Worker { from, frame });
    }

    /// A desk that is gone takes the gateway with it.
    fn place(&self, message: PlacementMessage) {
        if let Err(error) = self.placement.cast(message) {
            warn!(%error, "the placement actor takes no message");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use mesh::LinkId;
    use room::NodeId;
    use wire::{Role, WorkerStats};

    use super::{Layout, Peer, same_layout};

    fn layout((block_tokens, hash): (u32, u64)) -> Layout {
        Layout { block_tokens, hash }
    }

    #[track_caller]
    fn check(others: &[(u32, u64)], new: (u32, u64), refused: Option<&str>) {
        let peer = |(number, other): (u64, &(u32, u64))| {
            let peer = Peer {
                node: NodeId(number),
                name: format!("w{number}"),
                role: Role::Mixed,
                layout: layout(*other),
                stats: WorkerStats::default(),
                held: Vec::new(),
            };
            (
                LinkId {
                    number,
                    epoch: number,
                },
                peer,
            )
        };
        let peers: BTreeMap<_, _> = (1..).zip(others).map(peer).collect();
        match (same_layout(&peers, layout(new)), refused) {
            (Ok(()), None) => {}
            (Err(why), Some(named)) => assert!(why.contains(named), "{why}"),
            (other, _) => panic!("{other:?}, not {refused:?}"),
        }
    }

    #[test]
    fn the_first_worker_decides_the_layout() {
        check(&[], (16, 7), None);
        check(&[(16, 7), (16, 7)], (16, 7), None);
        check(&[(16, 7), (16, 7)], (16, 8), Some("weights"));
        check(&[(16, 7)], (32, 8), Some("blocks hold 32 tokens, those of w1 16"));
    }
}
