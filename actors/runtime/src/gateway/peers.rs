//! The linked workers: who they are, and which of them fit together.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use mesh::LinkId;
use room::{Advert, NodeId, Time};
use wire::{Held, Hello, Role, WorkerStats};

use super::orders::Orders;

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
    /// When its link came up, by the gateway's clock.
    pub linked: Time,
    /// When it last reported; none before it did.
    pub reported: Option<Time>,
    /// Where its own admin listener is, as it was bound: maybe to every address of its machine. None if it has none, or is too old to say.
    pub admin: Option<SocketAddr>,
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
    pub(super) fn of(hello: &Hello) -> Self {
        Self {
            block_tokens: hello.block_tokens,
            hash: hello.layout_hash,
        }
    }
}

impl Peer {
    pub(super) fn new(hello: Hello, now: Time) -> Self {
        Self {
            linked: now,
            reported: None,
            admin: None,
            node: NodeId(hello.epoch),
            layout: Layout::of(&hello),
            name: hello.node,
            role: hello.role,
            stats: WorkerStats::default(),
            held: Vec::new(),
        }
    }

    /// Whether nothing new goes there: it leaves, or an operator drained it. That is its own to say.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.stats.draining
    }

    /// What it could grant, by its last report.
    pub(super) fn advert(&self) -> Advert {
        let stats = &self.stats;
        Advert {
            available_blocks: stats.blocks_free.saturating_add(stats.blocks_cached),
            free_slots: stats.slots_total.saturating_sub(stats.slots_used),
            draining: self.is_draining(),
        }
    }
}

/// All linked workers.
#[derive(Debug, Default)]
pub(crate) struct LinkBoard {
    peers: Mutex<BTreeMap<LinkId, Peer>>,
    /// What operators want of them.
    pub(super) orders: Orders,
}

impl LinkBoard {
    fn with<R>(&self, f: impl FnOnce(&mut BTreeMap<LinkId, Peer>) -> R) -> R {
        f(&mut self.peers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a worker fits those that are linked.
    pub(super) fn judge(&self, hello: &Hello) -> Result<(), String> {
        self.with(|peers| fits(peers, Layout::of(hello)))
    }

    /// Takes a worker in. Judged once more, and under the lock that makes it count: two may have said hello at the same time.
    pub(super) fn admit(&self, link: LinkId, peer: Peer) -> Result<(), String> {
        self.with(|peers| {
            fits(peers, peer.layout)?;
            peers.insert(link, peer);
            Ok(())
        })
    }

    /// The incarnation that is linked under this name.
    pub(super) fn named(&self, name: &str) -> Option<NodeId> {
        self.with(|peers| {
            peers
                .values()
                .find(|peer| peer.name == name)
                .map(|peer| peer.node)
        })
    }

    /// Forgets a link; none if its worker was not taken in.
    pub(super) fn remove(&self, link: LinkId) -> Option<Peer> {
        let removed = self.with(|peers| peers.remove(&link));
        if let Some(peer) = &removed {
            self.orders.unlinked(peer.node);
        }
        removed
    }

    /// Changes or reads one that is linked.
    pub(super) fn at<R>(&self, link: LinkId, f: impl FnOnce(&mut Peer) -> R) -> Option<R> {
        self.with(|peers| peers.get_mut(&link).map(f))
    }

    pub(crate) fn read(&self) -> Vec<Peer> {
        self.with(|peers| peers.values().cloned().collect())
    }
}

/// The first worker decides the layout.
fn fits(peers: &BTreeMap<LinkId, Peer>, layout: Layout) -> Result<(), String> {
    let Some(peer) = peers.values().find(|peer| peer.layout != layout) else {
        return Ok(());
    };
    let (name, other) = (&peer.name, peer.layout);
    if layout.block_tokens != other.block_tokens {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use mesh::LinkId;
    use room::{NodeId, Time};
    use wire::{Role, WorkerStats};

    use super::{Layout, Peer, fits};

    fn layout((block_tokens, hash): (u32, u64)) -> Layout {
        Layout { block_tokens, hash }
    }

    fn peer((number, other): (u64, &(u32, u64))) -> (LinkId, Peer) {
        let peer = Peer {
            node: NodeId(number),
            name: format!("w{number}"),
            role: Role::Mixed,
            layout: layout(*other),
            stats: WorkerStats::default(),
            held: Vec::new(),
            linked: Time::default(),
            reported: None,
            admin: None,
        };
        let epoch = number;
        (LinkId { number, epoch }, peer)
    }

    #[track_caller]
    fn check(others: &[(u32, u64)], new: (u32, u64), refused: Option<&str>) {
        let peers: BTreeMap<_, _> = (1..).zip(others).map(peer).collect();
        match (fits(&peers, layout(new)), refused) {
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
