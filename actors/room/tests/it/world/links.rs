//! Links: orders one way, reports the other, and the heartbeat with its digest.

use std::collections::BTreeSet;

use room::{
    Advert, Attempt, BlockHash, FromOwner, HostCommand, HostInput, Job, NodeId, Order, ToOwner, Work,
};

use crate::host_kit::{heard, kept};
use crate::room_kit::GATEWAY;
use crate::world::{BLOCK_TOKENS, Event, HEARTBEAT, LATE, LATENCY, World};

impl World {
    pub(super) fn loses(&mut self) -> bool {
        self.sent += 1;
        self.losses
            .every
            .is_some_and(|every| self.sent.is_multiple_of(every))
    }

    pub(super) fn send_order(&mut self, to: NodeId, attempt: Attempt, order: Order) {
        let closes = matches!(order, Order::Close | Order::Release);
        if let Order::Reserve(work) | Order::Prefill { work, .. } = order {
            self.works.insert(attempt, work);
        }
        let allows = matches!(order, Order::Allow { .. });
        if (closes && self.losses.closes) || (allows && self.losses.allows) || self.loses() {
            return;
        }
        // All prompts begin alike, so that what can be shared is.
        let job = |work: Work| Job {
            positions: work.positions,
            max_positions: work.max_positions,
            delivered: work.delivered,
            until: work.until,
            hashes: (0..u128::from((work.positions - work.delivered) / BLOCK_TOKENS))
                .map(BlockHash)
                .collect(),
            deadline: work.deadline,
        };
        let message = match order {
            Order::Reserve(work) => FromOwner::Reserve(job(work)),
            Order::Prefill { work, .. } => FromOwner::Prefill(job(work)),
            Order::Pull { .. } => FromOwner::Pull { sampled: 1 },
            Order::Allow { until } => FromOwner::Allow { until },
            Order::Release => FromOwner::Release,
            Order::Close => FromOwner::Close,
        };
        let input = HostInput::Owner { attempt, message };
        if let Some(link) = self.link(to).filter(|_| self.repeats()) {
            self.after(LATE, Event::ToHost(to, link, input.clone()));
        }
        self.order_host(to, input);
    }

    /// The link that is up.
    fn link(&self, node: NodeId) -> Option<u64> {
        let worker = self.workers.get(&node).filter(|worker| worker.up)?;
        Some(worker.link)
    }

    fn repeats(&self) -> bool {
        let again = self.losses.again;
        again.is_some_and(|again| self.sent.is_multiple_of(again))
    }

    pub(super) fn order_host(&mut self, node: NodeId, input: HostInput) {
        if let Some(link) = self.link(node) {
            self.after(LATENCY, Event::ToHost(node, link, input));
        }
    }

    pub(super) fn host_input(&mut self, node: NodeId, input: HostInput) {
        if let Some(worker) = self.workers.get_mut(&node) {
            worker.host.handle_input(self.now, input);
            self.perform_host(node);
        }
    }

    pub(super) fn perform_host(&mut self, node: NodeId) {
        loop {
            let Some(worker) = self.workers.get_mut(&node) else {
                return;
            };
            let Some(command) = worker.host.poll_command() else {
                break;
            };
            match command {
                HostCommand::Tell { attempt, message } => self.tell(node, attempt, message),
                HostCommand::AnswerDigest { n: _, held, .. } => self.answer_digest(node, held),
                other => self.host_acts(node, other),
            }
        }
        let Some(worker) = self.workers.get_mut(&node) else {
            return;
        };
        while worker.host.poll_transition().is_some() {}
        assert!(worker.host.occupancy().adds_up(), "INV-02");
    }

    pub(super) fn tell(&mut self, node: NodeId, attempt: Attempt, message: ToOwner) {
        let report = heard(message);
        if let Some(link) = self.link(node)
            && !self.loses()
        {
            self.after(LATENCY, Event::ToRoom(node, link, attempt, report));
            if self.repeats() {
                self.after(LATE, Event::ToRoom(node, link, attempt, report));
            }
        }
    }

    /// A digest, and what it asked about: the answer is matched with the legs of when it was sent.
    pub(super) fn heartbeat(&mut self) {
        self.heartbeats += 1;
        let nodes: Vec<_> = self
            .workers
            .iter()
            .filter(|(_, w)| w.up)
            .map(|(node, _)| *node)
            .collect();
        for node in nodes {
            let mut open = Vec::new();
            for guest in &self.guests {
                let legs = guest.room.legs().into_iter();
                let wanted = legs.filter(|leg| leg.worker == node && leg.told_to_close.is_none());
                open.extend(wanted.map(|leg| {
                    let generation = leg.generation;
                    let attempt = Attempt {
                        room: guest.room.id(),
                        generation,
                    };
                    kept(attempt, guest.room.allowed())
                }));
            }
            let n = self.heartbeats;
            self.order_host(
                node,
                HostInput::Digest {
                    gateway: GATEWAY,
                    n,
                    open,
                },
            );
            self.advertise(node);
        }
        self.after(HEARTBEAT, Event::Heartbeat);
    }

    pub(super) fn answer_digest(&mut self, node: NodeId, held: Vec<Attempt>) {
        // Links are ordered and of one latency: what was ordered up to two latencies ago is known here.
        let mut asked = Vec::new();
        for guest in &self.guests {
            let told = guest.room.legs().into_iter().filter(|leg| leg.worker == node);
            asked.extend(told.map(|leg| Attempt {
                room: guest.room.id(),
                generation: leg.generation,
            }));
        }
        let sent_since: BTreeSet<Attempt> = self.on_the_way(node);
        asked.retain(|attempt| !sent_since.contains(attempt));
        let link = self.workers[&node].link;
        self.after(LATENCY, Event::DigestAnswer(node, link, asked, held));
    }

    pub(super) fn on_the_way(&self, node: NodeId) -> BTreeSet<Attempt> {
        let to_node = |event: &Event| match event {
            Event::ToHost(to, _, HostInput::Owner { attempt, .. }) if *to == node => Some(*attempt),
            _ => None,
        };
        self.events.values().filter_map(to_node).collect()
    }

    pub(super) fn advertise(&mut self, node: NodeId) {
        let host = &self.workers[&node].host;
        let occupancy = host.occupancy();
        let advert = Advert {
            available_blocks: occupancy.free + occupancy.cached,
            free_slots: host.spec().slots.saturating_sub(host.slots_used()),
            draining: false,
        };
        self.desk.advertise(self.now, node, advert);
    }
}
