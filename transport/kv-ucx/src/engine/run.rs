//! The loop: work while there is work, spin a little, then sleep until UCX or a caller has something.

use std::time::Instant;

use kv::ReadError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Engine, Tag};
use crate::{
    port::{Armed, Happening, Port},
    shared::Command,
};

/// Fruitless progress calls before sleeping while something is under way: a wake-up costs some 60 µs, a spin far less.
const SPINS: u32 = 2_000;
/// Fruitless progress calls between looks at the clock.
const CLOCK_EVERY: u32 = 64;

impl Engine {
    /// Runs until the transfer is dropped, then ends everything.
    pub(crate) fn run(mut self) {
        let mut idle_spins = 0;
        let mut until_clock = 0;
        while !self.shared.stopping() && self.port.is_some() {
            if until_clock == 0 {
                until_clock = CLOCK_EVERY;
                self.tick();
                if idle_spins > 0 {
                    // The peer may be waiting for this very core.
                    std::thread::yield_now();
                }
            }
            if self.step() {
                (idle_spins, until_clock) = (0, 0);
                continue;
            }
            until_clock -= 1;
            idle_spins += 1;
            let busy = !self.reads.is_empty() || !self.serves.is_empty();
            if idle_spins >= SPINS || !busy {
                self.sleep();
                (idle_spins, until_clock) = (0, 0);
            }
        }
        self.destroy();
        self.bury_all(&ReadError::Local("the transfer has stopped".into()));
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

    /// Takes commands, lets UCX work, handles what happened. True if there was anything.
    fn step(&mut self) -> bool {
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
        worked |= self.port.as_mut().is_some_and(Port::progress);
        while let Some(happening) = self.port.as_mut().and_then(Port::next) {
            worked = true;
            self.handle(happening);
        }
        worked
    }

    fn handle(&mut self, happening: Happening<Tag>) {
        match happening {
            Happening::Connect(request) => self.on_connect(request),
            Happening::EpFailed { ep, status } => self.on_ep_failed(ep, status),
            Happening::Message(message) => self.on_message(message),
            Happening::Done { tag, status, len } => {
                let failed = status.is_error();
                match tag {
                    Tag::Control(ep) => self.op_ended(ep, failed),
                    Tag::Data { ep, serve, blocks } => {
                        if failed {
                            // As below: the pin then waits for the endpoint's end.
                            self.close(ep, &ReadError::SourceLost(self.ucx.describe(status)));
                        }
                        self.on_sent(ep, serve, blocks, failed);
                        self.op_ended(ep, failed);
                    }
                    Tag::Landing { ep, read, piece } => {
                        let whole = len == piece.count as usize * self.region.block_bytes();
                        let result = match failed {
                            true => Err(ReadError::SourceLost(self.ucx.describe(status))),
                            false if !whole => Err(ReadError::SourceLost("it sent less than it said".into())),
                            false => Ok(()),
                        };
                        if let Err(why) = &result {
                            // Before the read ends: its end then waits for the endpoint's.
                            self.close(ep, why);
                        }
                        self.landed(read, &piece, result);
                        self.op_ended(ep, failed);
                    }
                    Tag::Closed(ep) => self.on_closed(ep),
                }
            }
        }
    }

    /// Sleeps until something may have happened, or a deadline may have passed.
    fn sleep(&mut self) {
        let limit = self.sleep_limit();
        let Some(port) = self.port.as_mut() else { return };
        if port.arm() == Armed::Busy {
            return;
        }
        let tv_sec = i64::try_from(limit.as_secs()).unwrap_or(1);
        let timeout = Timespec {
            tv_sec,
            tv_nsec: limit.subsec_nanos().into(),
        };
        let ucx = port.event_fd();
        let mut fds = [
            PollFd::from_borrowed_fd(ucx, PollFlags::IN),
            PollFd::from_borrowed_fd(self.shared.wake_fd(), PollFlags::IN),
        ];
        // An interrupted sleep is a short one.
        let _ = poll(&mut fds, Some(&timeout));
        self.shared.drain_wake();
    }
}
