//! How far an answer may get ahead of its reader.
//!
//! An attempt begins with leave to sample up to a place in the answer, and is given more as the reader takes tokens. It is a level and
//! not a count: each word says how far in all, so that one that comes twice or late does nothing, and one that is lost is made good by
//! the next, or by the next digest. Decode stops where its leave ends and keeps what it has. Meanwhile the room waits for the reader and
//! not for the worker, so no stall is held against anybody; what ends that wait is the request's own deadline (and, long before, whoever
//! serves the reader).

use crate::command::Order;
use crate::event::Happening;
use crate::id::NodeId;
use crate::room::Room;
use crate::room::deadline::Deadline;
use crate::room::state::Phase;
use crate::time::Time;

impl Room {
    /// The leave that a new attempt begins with: at any rate for the token that ends its prefill.
    pub(super) fn allow_first(&mut self) {
        self.allowed = self.wanted().max(self.delivered.saturating_add(1));
    }

    pub(super) fn reader_took(&mut self, now: Time, tokens: u32) {
        self.read = self.read.max(tokens.min(self.delivered));
        self.allow_more(now);
    }

    /// The answer has come as far as it may, or not: says so, once.
    pub(super) fn got_ahead(&mut self, now: Time) {
        if self.awaits_reader() {
            self.say(now, Happening::Paused);
            self.allow_more(now);
        }
    }

    /// Whether decode has done all that it may, and there is more to do.
    pub(super) fn awaits_reader(&self) -> bool {
        matches!(self.phase, Phase::Decoding(_)) && self.is_ahead()
    }

    /// When the next token must be here: while the reader is waited for, that is nobody's fault.
    pub(super) fn token_deadline(&self, now: Time) -> Deadline {
        let span = match self.is_ahead() {
            true => self.spec.deadline - now,
            false => self.limits.token_stall,
        };
        Deadline::after(now, span)
    }

    fn is_ahead(&self) -> bool {
        self.delivered >= self.allowed && !self.is_whole()
    }

    fn wanted(&self) -> u32 {
        self.read.saturating_add(self.limits.unread_tokens.max(1))
    }

    /// Tells decode how far it may go by now, where that is worth a message.
    fn allow_more(&mut self, now: Time) {
        let until = self.wanted();
        let more = until.saturating_sub(self.allowed);
        let paused = self.awaits_reader();
        if more == 0 || (more < self.limits.read_step() && !paused) {
            return;
        }
        let Some(decode) = self.decoder() else { return };
        self.allowed = until;
        self.send(now, decode, Order::Allow { until });
        if paused {
            let deadline = self.token_deadline(now);
            if let Phase::Decoding(p) = &mut self.phase {
                p.deadline = deadline;
            }
            self.say(now, Happening::Resumed);
        }
    }

    /// The worker that generates, or will.
    fn decoder(&self) -> Option<NodeId> {
        match &self.phase {
            Phase::Reserving(p) => Some(p.route.decode),
            Phase::Prefilling(p) => Some(p.route.decode),
            Phase::Pulling(p) => Some(p.route.decode),
            Phase::Decoding(p) => Some(p.worker),
            Phase::Queued(_) | Phase::Draining | Phase::Ended => None,
        }
    }
}
