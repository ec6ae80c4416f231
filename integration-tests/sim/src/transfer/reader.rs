//! The reader's end: asks, takes what comes, verifies what landed, tells the end.

use std::{collections::BTreeSet, sync::Arc};

use kv::{KvError, KvEvent, Read, ReadError, ReadId, ReadStats, Refusal, TransferKey, block_checksum};

use super::{
    faults::Fault,
    flow::{Answer, Flow, FlowId, Reading},
    members::{MemberId, TRANSPORT},
    pins::Pins,
    queue::What,
    world::World,
};

impl World {
    /// Takes a read in, and sends its request.
    pub(super) fn start_read(&mut self, reader: MemberId, read: Read) -> Result<(), KvError> {
        let source = MemberId::parse(&read.source)?;
        let member = self.members.get_mut(&reader).ok_or(KvError::Stopped)?;
        member.account.open(&read, member.memory.as_ref())?;
        self.last_flow += 1;
        let id = FlowId(self.last_flow);
        member.reads.insert(read.id, id);
        let memory = Arc::clone(&member.memory);
        let reading = Reading {
            progress: self.now,
            taken: 0,
            missing: u32::try_from(read.into.len()).unwrap_or(u32::MAX),
            landed: BTreeSet::new(),
            descriptors: 0,
            failed: None,
            pins: Pins::over(memory.as_ref(), &read.into, &mut self.scratch),
        };
        let fault = self.plan(reader, source);
        let flow = Flow {
            reader,
            source,
            asked: asked(&read, fault),
            read,
            block_bytes: memory.block_bytes(),
            fault,
            reading: Some(reading),
            answer: Answer::ToCome,
        };
        self.flows.insert(id, flow);
        self.path(source, reader);
        self.send_request(id, fault);
        Ok(())
    }

    /// What a new read meets: what a script says, or chance.
    fn plan(&mut self, reader: MemberId, source: MemberId) -> Option<Fault> {
        let seen = self.reads_seen.entry(reader.place).or_default();
        let nth = *seen;
        *seen += 1;
        let scripted = self
            .scripts
            .get_mut(&reader.place)
            .and_then(|script| script.remove(&nth));
        let faults = self.faults_between(reader, source);
        let drawn = self
            .members
            .get_mut(&reader)
            .and_then(|member| faults.draw(&mut member.rng));
        scripted.or(drawn)
    }

    fn send_request(&mut self, id: FlowId, fault: Option<Fault>) {
        if fault == Some(Fault::Fail) {
            self.count(Fault::Fail.name());
            if let Some(flow) = self.flows.get_mut(&id) {
                flow.answer = Answer::Over;
            }
            self.queue
                .push(self.now, id, What::SourceGone("no route to host"));
            return;
        }
        let mut at = self.now + self.config.latency;
        match fault {
            Some(late @ Fault::Late(by)) => {
                self.count(late.name());
                at += by;
            }
            Some(forged @ (Fault::WrongCapability | Fault::StaleGeneration)) => self.count(forged.name()),
            _ => {}
        }
        self.queue.push(at, id, What::Ask);
        self.queue
            .push(self.now + self.config.no_progress, id, What::ReadDeadline);
    }

    /// The owner does not want it any more: no more is taken, the source is told, and the end comes when the endpoint
    /// is closed.
    pub(super) fn cancel(&mut self, reader: MemberId, read: ReadId) {
        let Some(member) = self.members.get_mut(&reader) else {
            return;
        };
        if !member.account.cancel(read) {
            return;
        }
        if let Some(&id) = member.reads.get(&read) {
            self.give_up(id, ReadError::Cancelled);
        }
    }

    /// Fails one read by itself, and tells the source.
    fn give_up(&mut self, id: FlowId, why: ReadError) {
        if self.close_read(id, why) {
            let at = self.now + self.config.latency;
            self.queue.push(at, id, What::Cancel);
        }
    }

    /// A piece is announced. The source's send of what is not wanted completes all the same.
    pub(super) fn on_header(&mut self, id: FlowId, at: u32) {
        let now = self.now;
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let (source, reader, fault, blocks) = (flow.source, flow.reader, flow.fault, flow.blocks());
        let foreign = flow.asked.0 != flow.read.key;
        let Some(count) = flow
            .serving()
            .and_then(|serving| serving.in_flight.get(&at))
            .map(|piece| piece.run.count)
        else {
            return;
        };
        self.path(source, reader).reader_progress = now;
        let Some(reading) = self.flows.get_mut(&id).and_then(Flow::accepting) else {
            let back = now + self.config.latency;
            self.queue.push(back, id, What::Sent { at });
            return;
        };
        if foreign {
            self.give_up(
                id,
                ReadError::SourceLost("it sent a piece of another transfer".into()),
            );
            return;
        }
        if fault == Some(Fault::FailHalfway) && reading.taken * 2 + 1 >= blocks {
            self.count(Fault::FailHalfway.name());
            self.close_endpoint(id, ReadError::SourceLost("endpoint timeout".into()));
            return;
        }
        reading.progress = now;
        reading.taken += count;
        let mut takes = self.config.block_time * count;
        if let Some(Fault::Slow(factor)) = fault {
            takes *= factor;
            if at == 0 {
                self.count(Fault::Slow(factor).name());
            }
        }
        let path = self.path(source, reader);
        let lands = path.free_at.max(now) + takes;
        path.free_at = lands;
        self.queue.push(lands, id, What::Land { at });
    }

    /// A piece has landed, if the source still lends it.
    pub(super) fn on_land(&mut self, id: FlowId, at: u32) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let (source, reader, fault) = (flow.source, flow.reader, flow.fault);
        let Some(count) = flow
            .serving()
            .and_then(|serving| serving.in_flight.get(&at))
            .map(|piece| piece.run.count)
        else {
            return;
        };
        let landed = self.copy(id, at);
        let mut back = self.now + self.config.latency;
        if let Some(late @ Fault::LateCompletion(by)) = fault {
            back += by;
            if at == 0 {
                self.count(late.name());
            }
        }
        self.queue.push(back, id, What::Sent { at });
        let now = self.now;
        self.path(source, reader).reader_progress = now;
        let Some(reading) = self.flows.get_mut(&id).and_then(Flow::accepting) else {
            return;
        };
        reading.progress = now;
        match landed {
            Ok(()) => {
                reading.missing = reading.missing.saturating_sub(count);
                reading.descriptors += 1;
                if reading.missing == 0 {
                    self.tell_end(id, None);
                }
            }
            Err(why) => self.give_up(id, why),
        }
    }

    /// Copies one piece as it is at the source now, and verifies what landed by what was posted.
    fn copy(&mut self, id: FlowId, at: u32) -> Result<(), ReadError> {
        let Some(flow) = self.flows.get_mut(&id) else {
            return Ok(());
        };
        let (Some(source), Some(reader)) = (self.members.get(&flow.source), self.members.get(&flow.reader))
        else {
            return Ok(());
        };
        let (Some(reading), Answer::UnderWay(serving)) = (&mut flow.reading, &flow.answer) else {
            return Ok(());
        };
        let Some(piece) = serving.in_flight.get(&at) else {
            return Ok(());
        };
        let (from, to) = (Arc::clone(&source.memory), Arc::clone(&reader.memory));
        let (key, first) = (flow.read.key, flow.read.from.wrapping_add(at));
        let corrupt = flow.fault == Some(Fault::Corrupt) && at == 0;
        let (mut result, mut broken) = (Ok(()), Vec::new());
        let mut bytes = vec![0; flow.block_bytes];
        for (i, &posted) in (0u32..).zip(&piece.checksums) {
            let Some(&into) = flow.read.into.get((at + i) as usize) else {
                break;
            };
            let lent = piece.run.source + i;
            if !reading.pins.holds(to.as_ref(), into, &mut self.scratch) {
                broken.push((flow.reader, into, "is written to while it is pinned by a read"));
            }
            if from.read_into(lent, 0, &mut bytes).is_err() {
                break;
            }
            if block_checksum(key, first + i, &bytes) != posted {
                broken.push((flow.source, lent, "is written to while it is pinned by a send"));
            }
            if corrupt && i == 0 {
                bytes[0] ^= 1;
            }
            if to.write_from(into, 0, &bytes).is_err() || block_checksum(key, first + i, &bytes) != posted {
                result = Err(ReadError::Corrupt { block: into });
            }
            reading.pins.written(to.as_ref(), into, &mut self.scratch);
            reading.landed.insert(at + i);
        }
        if corrupt {
            self.count(Fault::Corrupt.name());
        }
        for (member, block, how) in broken {
            self.violation(|| format!("block {block} of {member} {how} ({key})"));
        }
        result
    }

    /// The source said no. What it has sent before may still be landing.
    pub(super) fn on_refuse(&mut self, id: FlowId, why: Refusal) {
        let now = self.now;
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let (source, reader) = (flow.source, flow.reader);
        let untouched = flow.accepting().is_some_and(|reading| reading.taken == 0);
        self.path(source, reader).reader_progress = now;
        let why = ReadError::Refused(why);
        if untouched {
            self.tell_end(id, Some(why));
        } else {
            self.close_read(id, why);
        }
    }

    /// Tells the end of a read: from here on no byte of it can land.
    pub(super) fn tell_end(&mut self, id: FlowId, why: Option<ReadError>) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let Some(reading) = flow.reading.take() else {
            return;
        };
        let (reader, key, read) = (flow.reader, flow.read.key, flow.read.id);
        let bytes = (flow.read.into.len() * flow.block_bytes) as u64;
        let result = match why {
            Some(why) => Err(why),
            None => Ok(ReadStats {
                bytes,
                descriptors: reading.descriptors,
                transport: TRANSPORT,
            }),
        };
        if let Some(member) = self.members.get_mut(&reader) {
            let broken = reading.pins.broken(member.memory.as_ref(), &mut self.scratch);
            member.account.end(read, &result);
            member.reads.remove(&read);
            let sink = member.sink.clone();
            self.tell(&sink, KvEvent::ReadEnded { id: read, result });
            if let Some(block) = broken {
                let what = "is written to before the end of its read is told";
                self.violation(|| format!("block {block} of {reader} {what} ({key})"));
            }
        }
        self.reap(id);
    }
}

/// What the source is asked for.
fn asked(read: &Read, fault: Option<Fault>) -> (TransferKey, u128) {
    let (mut key, mut capability) = (read.key, read.capability);
    match fault {
        Some(Fault::StaleGeneration) => key.generation = key.generation.wrapping_sub(1),
        Some(Fault::WrongCapability) => capability ^= 1,
        _ => {}
    }
    (key, capability)
}
