//! Closing by force: what stalls, what fails, and what may still land until the end.

use std::time::Duration;

use kv::ReadError;
use rand::Rng;
use tokio::time::Instant;

use super::{
    faults::{DUPLICATE_BYTES, Faults, LATE_BYTES, SLOW_CLOSE},
    flow::{Answer, Flow, FlowId},
    members::MemberId,
    queue::What,
    world::World,
};

/// As in `kv-ucx`: what itself stays away this many limits is given up even if its endpoint is busy with others.
const OWN_LIMITS: u32 = 8;
/// What stray bytes look like.
const STRAY: u8 = 0xee;

impl World {
    /// Begins the end of one read: from now on nothing is accepted, but what is on its way may land until the close has
    /// ended. False if it has begun before.
    pub(super) fn close_read(&mut self, id: FlowId, why: ReadError) -> bool {
        let Some(flow) = self.flows.get_mut(&id) else {
            return false;
        };
        let (reader, source) = (flow.reader, flow.source);
        let Some(reading) = flow.accepting() else {
            return false;
        };
        reading.failed = Some(why);
        let faults = self.faults_between(reader, source);
        let takes = self.draw_close(reader, faults);
        self.draw_strays(id, reader, faults, takes);
        self.queue.push(self.now + takes, id, What::ReadClosed);
        true
    }

    /// The reader closes the endpoint of a read by force, because of that read: the others on it end with it.
    pub(super) fn close_endpoint(&mut self, culprit: FlowId, why: ReadError) {
        let Some(flow) = self.flows.get(&culprit) else {
            return;
        };
        let (source, reader) = (flow.source, flow.reader);
        let heard = self.now + self.config.latency;
        self.close_read(culprit, why);
        for id in self.on_path(source, reader) {
            let other = ReadError::SourceLost("another read on its endpoint failed".into());
            self.close_read(id, other);
            self.queue.push(heard, id, What::ReaderGone);
        }
    }

    /// How long a forced close of this member's takes.
    fn draw_close(&mut self, member: MemberId, faults: Faults) -> Duration {
        let Some(member) = self.members.get_mut(&member) else {
            return self.config.close;
        };
        let (slow, share) = (
            member.rng.random::<f64>() < faults.slow_close,
            member.rng.random::<f64>(),
        );
        let most = match slow {
            true => self.config.slow_close,
            false => self.config.close,
        };
        if slow {
            self.count(SLOW_CLOSE);
        }
        most.mul_f64(share).max(Duration::from_millis(1))
    }

    /// Lets bytes land where they still may.
    fn draw_strays(&mut self, id: FlowId, reader: MemberId, faults: Faults, within: Duration) {
        let (Some(flow), Some(member)) = (self.flows.get(&id), self.members.get_mut(&reader)) else {
            return;
        };
        let strikes = member.rng.random::<f64>() < faults.late_bytes;
        let copies = member.rng.random_range(1..=3);
        if !strikes {
            return;
        }
        for _ in 0..copies {
            let index = member.rng.random_range(0..flow.blocks());
            let at = self.now + within.mul_f64(member.rng.random());
            self.queue.push(at, id, What::Stray { index });
        }
    }

    /// Bytes land late, in a block that is pinned for as long.
    pub(super) fn on_stray(&mut self, id: FlowId, index: u32) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let Some(member) = self.members.get(&flow.reader) else {
            return;
        };
        let (Some(reading), Some(&block)) = (flow.reading.as_mut(), flow.read.into.get(index as usize))
        else {
            return;
        };
        let bytes = vec![STRAY ^ u8::try_from(index % 16).unwrap_or(0); flow.block_bytes];
        let (key, reader, memory) = (flow.read.key, flow.reader, member.memory.as_ref());
        let held = reading.pins.holds(memory, block, &mut self.scratch);
        if memory.write_from(block, 0, &bytes).is_ok() {
            reading.pins.written(memory, block, &mut self.scratch);
            let again = reading.landed.contains(&index);
            self.count(if again { DUPLICATE_BYTES } else { LATE_BYTES });
        }
        if !held {
            let what = "is written to while its endpoint is being closed";
            self.violation(|| format!("block {block} of {reader} {what} ({key})"));
        }
    }

    /// The endpoint is closed: nothing can land any more.
    pub(super) fn on_read_closed(&mut self, id: FlowId) {
        let reading = self.flows.get_mut(&id).and_then(|flow| flow.reading.as_mut());
        if let Some(why) = reading.and_then(|reading| reading.failed.take()) {
            self.tell_end(id, Some(why));
        }
    }

    /// The reader hears that the other side is gone.
    pub(super) fn on_source_gone(&mut self, id: FlowId, why: &str) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let untouched = flow.accepting().is_some_and(|reading| reading.taken == 0);
        let why = ReadError::SourceLost(why.to_owned());
        if untouched {
            self.tell_end(id, Some(why));
        } else {
            self.close_read(id, why);
        }
    }

    /// The source hears that the other side is gone: its own end has to be closed before the pin goes.
    pub(super) fn on_reader_gone(&mut self, id: FlowId) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        if matches!(flow.answer, Answer::ToCome) {
            flow.answer = Answer::Over;
        }
        self.close_answer(id);
        self.reap(id);
    }

    fn close_answer(&mut self, id: FlowId) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let (reader, source) = (flow.reader, flow.source);
        let Some(serving) = flow.serving().filter(|serving| !serving.closing) else {
            return;
        };
        serving.closing = true;
        serving.to_send.clear();
        let faults = self.faults_between(reader, source);
        let takes = self.draw_close(source, faults);
        self.queue.push(self.now + takes, id, What::AnswerClosed);
    }

    /// The source's end is closed: nobody reads its blocks any more.
    pub(super) fn on_answer_closed(&mut self, id: FlowId) {
        self.end_answer(id);
    }

    /// The reader looks at a read's progress.
    pub(super) fn on_read_deadline(&mut self, id: FlowId) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let (source, reader) = (flow.source, flow.reader);
        let Some(own) = flow.accepting().map(|reading| reading.progress) else {
            return;
        };
        let path = self.paths.get(&(source, reader));
        let endpoint = path.map_or(own, |path| path.reader_progress);
        match self.next_look(own, endpoint) {
            Some(at) => self.queue.push(at, id, What::ReadDeadline),
            None => {
                let ms = u64::try_from(self.config.no_progress.as_millis()).unwrap_or(u64::MAX);
                self.close_endpoint(id, ReadError::NoProgress { ms });
            }
        }
    }

    /// The source looks at an answer's progress. If there is none, all its answers on that endpoint end with it.
    pub(super) fn on_answer_deadline(&mut self, id: FlowId) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let (source, reader) = (flow.source, flow.reader);
        let Some(own) = flow
            .serving()
            .filter(|serving| !serving.closing)
            .map(|serving| serving.progress)
        else {
            return;
        };
        let path = self.paths.get(&(source, reader));
        let endpoint = path.map_or(own, |path| path.source_progress);
        if let Some(at) = self.next_look(own, endpoint) {
            self.queue.push(at, id, What::AnswerDeadline);
            return;
        }
        let heard = self.now + self.config.latency;
        for id in self.on_path(source, reader) {
            let under_way = |flow: &mut Flow| flow.serving().is_some();
            if self.flows.get_mut(&id).is_some_and(under_way) {
                self.close_answer(id);
                self.queue
                    .push(heard, id, What::SourceGone("connection reset by the source"));
            }
        }
    }

    /// When to look again; none if it is stalled.
    fn next_look(&self, own: Instant, endpoint: Instant) -> Option<Instant> {
        let limit = self.config.no_progress;
        let at = (own.max(endpoint) + limit).min(own + limit * OWN_LIMITS);
        (at > self.now).then_some(at)
    }
}
