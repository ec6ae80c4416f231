//! The loop: work while there is work, spin a little, then sleep until UCX or a caller has something.

use std::time::Instant;

use kv::ReadError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Engine, EpId, Tag};
use crate::{
    port::{Armed, Happening},
    shared::Command,
};

/// Fruitless rounds before sleeping while something is under way: a wake-up costs some 60 µs, a spin far less.
const SPINS: u32 = 2_000;
/// Rounds between looks at the clock, and at the endpoints on which nothing is under way.
const LOOK_EVERY: u32 = 64;

impl Engine {
    /// Runs until the transfer is dropped, then ends everything.
    pub(crate) fn run(mut self) {
        let (mut rounds, mut idle) = (0u32, 0u32);
        while !self.shared.stopping() {
            let look = rounds.is_multiple_of(LOOK_EVERY);
            if look || idle == 0 {
                self.tick();
            }
            if look && idle > 0 {
                // The peer may be waiting for this very core.
                std::thread::yield_now();
            }
            rounds = rounds.wrapping_add(1);
            if self.step(look) {
                idle = 0;
                continue;
            }
            idle += 1;
            let busy = !self.reads.is_empty() || !self.serves.is_empty();
            if idle >= SPINS || !busy && look {
                self.sleep();
                (rounds, idle) = (0, 0);
            }
        }
        self.close_all(&ReadError::Local("the transfer has stopped".into()));
    }

    /// Looks at the clock and the deadlines. After a pause of this very thread nothing is held against the peers
    /// before their messages have been looked at.
    fn tick(&mut self) {
        let before = std::mem::replace(&mut self.now, Instant::now());
        let paused = self.now.duration_since(before) > self.limit / 2;
        if !paused || self.paused {
            self.check_deadlines();
        }
        self.paused = paused;
    }

    /// Takes commands, lets UCX work, handles what happened. True if there was anything. Where nothing is under way
    /// it looks only if `all`.
    fn step(&mut self, all: bool) -> bool {
        let commands = self.shared.take_commands();
        let mut worked = !commands.is_empty();
        if worked {
            self.now = Instant::now();
        }
        for command in commands {
            match command {
                Command::Read(read, from) => self.start_read(read, from),
                Command::Cancel(id) => self.cancel_read(id),
            }
        }
        if all {
            worked |= self.listener.progress();
            while let Some(request) = self.listener.next() {
                worked = true;
                self.on_connect(request);
            }
        }
        let mut ids = std::mem::take(&mut self.in_turn);
        let in_turn = self.endpoints.iter().filter(|(_, ep)| all || ep.busy());
        ids.extend(in_turn.map(|(&id, _)| id));
        for id in ids.drain(..) {
            worked |= self.progress(id);
        }
        self.in_turn = ids;
        worked
    }

    /// Lets UCX work on one endpoint. True if anything happened.
    fn progress(&mut self, id: EpId) -> bool {
        let Some(ep) = self.endpoints.get_mut(&id) else {
            return false;
        };
        let worked = ep.connection.progress();
        while let Some(happening) = self.endpoints.get_mut(&id).and_then(|ep| ep.connection.next()) {
            self.handle(id, happening);
        }
        worked
    }

    fn handle(&mut self, id: EpId, happening: Happening<Tag>) {
        let (tag, status, len) = match happening {
            Happening::Message(message) => return self.on_message(id, message),
            Happening::Failed(status) => return self.close(id, &self.lost(status)),
            Happening::Done { tag, status, len } => (tag, status, len),
        };
        if status.is_error() {
            return self.close(id, &self.lost(status));
        }
        match tag {
            Tag::Control => {}
            Tag::Data { serve, blocks } => self.on_sent(id, serve, blocks),
            Tag::Landing { read, piece } if len == piece.count as usize * self.region.block_bytes() => {
                self.landed(read, &piece, true);
            }
            Tag::Landing { .. } => self.close(id, &ReadError::SourceLost("it sent less than it said".into())),
        }
    }

    fn lost(&self, status: crate::sys::Status) -> ReadError {
        ReadError::SourceLost(self.ucx.describe(status))
    }

    /// Sleeps until something may have happened, or a deadline may have passed.
    fn sleep(&mut self) {
        let limit = self.sleep_limit();
        let busy = |armed| armed == Armed::Busy;
        let endpoints = self.endpoints.values_mut();
        if busy(self.listener.arm()) || endpoints.map(|ep| ep.connection.arm()).any(busy) {
            return;
        }
        let tv_sec = i64::try_from(limit.as_secs()).unwrap_or(1);
        let timeout = Timespec {
            tv_sec,
            tv_nsec: limit.subsec_nanos().into(),
        };
        let own = [self.shared.wake_fd(), self.listener.event_fd()];
        let peers = self.endpoints.values().map(|ep| ep.connection.event_fd());
        let mut fds: Vec<_> = own
            .into_iter()
            .chain(peers)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        // An interrupted sleep is a short one.
        let _ = poll(&mut fds, Some(&timeout));
        self.shared.drain_wake();
    }
}
