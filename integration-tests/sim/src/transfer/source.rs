//! The source's end: answers while the offer stands, keeps it pinned until every send has completed or is closed.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use kv::{KvMemory, Refusal, Run, block_checksum, coalesce};

use super::{
    faults::Fault,
    flow::{Answer, Flow, FlowId, Piece, Serving},
    members::TRANSPORT,
    queue::What,
    world::World,
};

/// Pieces of one answer in flight.
const WINDOW: usize = 4;

impl World {
    /// A peer asks for blocks.
    pub(super) fn on_ask(&mut self, id: FlowId) {
        let now = self.now;
        let Some(flow) = self.flows.get(&id) else { return };
        if !matches!(flow.answer, Answer::ToCome) {
            return;
        }
        let (source, reader, key, early) = (
            flow.source,
            flow.reader,
            flow.asked.0,
            flow.fault == Some(Fault::WithdrawEarly),
        );
        self.path(source, reader).source_progress = now;
        match self.admit(id) {
            Err(why) => {
                if let Some(member) = self.members.get_mut(&source) {
                    member.account.refused();
                }
                if let Some(flow) = self.flows.get_mut(&id) {
                    flow.answer = Answer::Over;
                }
                self.queue.push(now + self.config.latency, id, What::Refuse(why));
                self.reap(id);
            }
            Ok(to_send) => {
                if let Some(flow) = self.flows.get_mut(&id) {
                    flow.answer = Answer::UnderWay(Serving {
                        progress: now,
                        to_send,
                        in_flight: BTreeMap::new(),
                        closing: false,
                    });
                }
                self.queue
                    .push(now + self.config.no_progress, id, What::AnswerDeadline);
                self.pump(id);
                if early && let Some(member) = self.members.get_mut(&source) {
                    member.account.offers.withdraw(key);
                    member.withdrawn_early.insert(key);
                    member.standing.remove(&key);
                    self.count(Fault::WithdrawEarly.name());
                }
            }
        }
    }

    /// Pins the offer for an answer, and cuts it into pieces.
    fn admit(&mut self, id: FlowId) -> Result<VecDeque<Run>, Refusal> {
        let flow = self.flows.get(&id).ok_or(Refusal::Malformed)?;
        let member = self.members.get_mut(&flow.source).ok_or(Refusal::Malformed)?;
        if member.memory.block_bytes() != flow.block_bytes {
            return Err(Refusal::Layout);
        }
        let (key, capability) = flow.asked;
        let count = flow.blocks();
        let blocks = member
            .account
            .offers
            .look_up(key, capability, flow.read.from, count)?;
        let fine = flow.fault.is_some_and(Fault::is_fine);
        let most = if fine { count / 2 } else { u32::MAX };
        let runs = coalesce(blocks, &flow.read.into, most.min(self.config.piece_blocks).max(1));
        member.account.answer(key);
        if member.standing.get(&key) != Some(&capability) {
            let (reader, source) = (flow.reader, flow.source);
            self.violation(|| format!("{source} answers {reader} without a standing offer of {key}"));
        }
        Ok(runs.into())
    }

    /// Posts what may be posted. Where the offer has been withdrawn meanwhile, what is in flight ends and no more is sent.
    fn pump(&mut self, id: FlowId) {
        loop {
            let Some(flow) = self.flows.get_mut(&id) else {
                return;
            };
            let (source, key, from, fault) = (flow.source, flow.asked.0, flow.read.from, flow.fault);
            let Some(serving) = flow.serving() else { return };
            if serving.in_flight.len() >= WINDOW || serving.to_send.is_empty() {
                return;
            }
            let Some(member) = self.members.get_mut(&source) else {
                return;
            };
            if !member.account.offers.stands(key) {
                serving.to_send.clear();
                member.account.refused();
                let at = self.now + self.config.latency;
                self.queue.push(at, id, What::Refuse(Refusal::NoSuchOffer));
                return;
            }
            let Some(run) = serving.to_send.pop_front() else {
                return;
            };
            let memory = Arc::clone(&member.memory);
            let at = run.at;
            let checksums = checksums(memory.as_ref(), key, from, run);
            serving.in_flight.insert(at, Piece { run, checksums });
            let latency = self.config.latency;
            if at == 0 && fault == Some(Fault::LoseSend) {
                self.count(Fault::LoseSend.name());
                self.queue.push(self.now + latency * 2, id, What::Sent { at });
            } else {
                self.queue.push(self.now + latency, id, What::Header { at });
            }
        }
    }

    /// A piece's send has completed.
    pub(super) fn on_sent(&mut self, id: FlowId, at: u32) {
        let now = self.now;
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let (source, reader, block_bytes) = (flow.source, flow.reader, flow.block_bytes);
        let Some(serving) = flow.serving() else { return };
        serving.progress = now;
        let Some(piece) = serving.in_flight.remove(&at) else {
            return;
        };
        self.path(source, reader).source_progress = now;
        self.verify_lent(id, &piece);
        if let Some(member) = self.members.get_mut(&source) {
            let bytes = u64::from(piece.run.count) * block_bytes as u64;
            member.account.sent(bytes, 1, TRANSPORT);
        }
        self.pump(id);
        self.settle(id);
    }

    /// The reader wants no more: what is in flight ends by itself. Before the request has come it means nothing.
    pub(super) fn on_cancel(&mut self, id: FlowId) {
        let now = self.now;
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let (source, reader) = (flow.source, flow.reader);
        if let Some(serving) = flow.serving() {
            serving.to_send.clear();
        }
        self.path(source, reader).source_progress = now;
        self.settle(id);
    }

    /// Takes the pin off an answer that has ended.
    fn settle(&mut self, id: FlowId) {
        let ended = |flow: &mut Flow| flow.serving().is_some_and(|serving| serving.has_ended());
        if self.flows.get_mut(&id).is_some_and(ended) {
            self.end_answer(id);
        }
    }

    /// Nothing of it is lent any more.
    pub(super) fn end_answer(&mut self, id: FlowId) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let (source, key) = (flow.source, flow.asked.0);
        if let Answer::UnderWay(serving) = std::mem::replace(&mut flow.answer, Answer::Over) {
            for piece in serving.in_flight.values() {
                self.verify_lent(id, piece);
            }
            self.unpin(source, key);
        }
        self.reap(id);
    }

    /// What was lent must be as it was when it was posted.
    fn verify_lent(&mut self, id: FlowId, piece: &Piece) {
        let Some(flow) = self.flows.get(&id) else { return };
        let (source, key) = (flow.source, flow.asked.0);
        let Some(member) = self.members.get(&source) else {
            return;
        };
        let now = checksums(member.memory.as_ref(), key, flow.read.from, piece.run);
        if now != piece.checksums {
            let (run, what) = (piece.run, "are written to before their send has completed");
            self.violation(|| {
                format!(
                    "blocks {}..{} of {source} {what} ({key})",
                    run.source,
                    run.source + run.count
                )
            });
        }
    }
}

/// Checksums of a piece's blocks as they are now, under their positions in the offer.
fn checksums(memory: &dyn KvMemory, key: kv::TransferKey, from: u32, run: Run) -> Vec<u64> {
    let mut bytes = vec![0; memory.block_bytes()];
    (0..run.count)
        .map(|i| match memory.read_into(run.source + i, 0, &mut bytes) {
            Ok(()) => block_checksum(key, from.wrapping_add(run.at + i), &bytes),
            Err(_) => 0,
        })
        .collect()
}
