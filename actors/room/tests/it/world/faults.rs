//! Workers that die or are cut off, and come back.

use std::collections::{BTreeMap, BTreeSet};

use room::{Host, HostInput, HostLimits, HostSpec, Input, NodeId, Role, WorkerSpec};

use crate::room_kit::GATEWAY;
use crate::world::{BLOCK_TOKENS, BLOCKS, Event, Fault, LEASE, Worker, World};

impl World {
    pub(super) fn fault(&mut self, fault: Fault) {
        let nth = |index: usize, world: &Self| {
            world
                .workers
                .keys()
                .nth(index % world.workers.len().max(1))
                .copied()
        };
        match fault {
            Fault::Abort(index) => {
                let id = self.guests[index % self.guests.len()].room.id();
                self.room_input(id, Input::Abort(room::AbortBy::ClientGone));
            }
            Fault::Cut(index) => {
                if let Some(node) = nth(index, self) {
                    self.cut(node);
                }
            }
            Fault::Kill(index) => {
                if let Some(node) = nth(index, self).filter(|node| self.workers[node].up) {
                    let worker = self.workers.remove(&node).unwrap();
                    self.after(LEASE, Event::LeaseEnds(node, worker.link));
                    self.after(
                        LEASE.doubled(),
                        Event::LinkUp(NodeId(node.0 + 1), worker.role, true),
                    );
                }
            }
        }
    }

    /// Nothing gets through any more; both ends find out by the lease; then they link anew.
    pub(super) fn cut(&mut self, node: NodeId) {
        let Some(worker) = self.workers.get_mut(&node).filter(|worker| worker.up) else {
            return;
        };
        worker.up = false;
        let (link, role) = (worker.link, worker.role);
        self.after(LEASE, Event::LeaseEnds(node, link));
        self.after(LEASE.doubled(), Event::LinkUp(node, role, false));
    }

    pub(super) fn lease_ends(&mut self, node: NodeId, link: u64) {
        if self.linked(node, link) {
            return;
        }
        self.desk.worker_down(self.now, node);
        self.host_input(node, HostInput::GatewayLost { gateway: GATEWAY });
        for index in 0..self.guests.len() {
            self.room_input(self.guests[index].room.id(), Input::WorkerLost { worker: node });
        }
    }

    pub(super) fn link_up(&mut self, node: NodeId, role: Role, fresh: bool) {
        self.counter += 1;
        let link = self.counter;
        if fresh {
            let worker = Worker {
                role,
                host: Host::new(HostSpec {
                    block_tokens: BLOCK_TOKENS,
                    blocks: BLOCKS,
                    slots: 4,
                    mixed: role == Role::Mixed,
                    limits: HostLimits::default(),
                }),
                link,
                up: true,
                engine: BTreeMap::new(),
                offers: BTreeSet::new(),
                reads: BTreeSet::new(),
            };
            self.workers.insert(node, worker);
        } else if let Some(worker) = self.workers.get_mut(&node) {
            (worker.up, worker.link) = (true, link);
        } else {
            return;
        }
        let spec = WorkerSpec {
            role,
            blocks: BLOCKS,
            block_tokens: BLOCK_TOKENS,
            slots: 4,
        };
        self.desk.worker_up(self.now, node, spec);
        self.desk_decides();
    }
}
