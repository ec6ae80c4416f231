//! Every span and bound that the owner's side decides by, with safe defaults.

use crate::time::Span;

/// The deadlines and bounds of a room.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct Limits {
    /// How long a room may wait for credit before the client is told to come again later.
    pub queue: Span,
    /// How long decode may take to grant or to refuse.
    pub reserve: Span,
    /// How long a prefill may compute nothing new. Not a bound on the length of a prompt.
    pub prefill_stall: Span,
    /// How long a pull may take. Longer than the transfer's own deadline for lack of progress, which ends one that is stuck.
    pub pull: Span,
    /// How long decode may send no new token.
    pub token_stall: Span,
    /// How many tokens of an answer may be computed that its reader has not taken; at least one. Beyond it the answer is
    /// paused, which is no fault.
    pub unread_tokens: u32,
    /// How many attempts at one room may fail by a fault before the room does.
    pub max_faults: u32,
    /// First pause before a refused or evicted room asks for credit again; doubles each time.
    pub requeue_first: Span,
    /// The longest such pause.
    pub requeue_max: Span,
    /// First pause before an unanswered `Close` or `Release` is repeated; doubles each time.
    pub close_first: Span,
    /// The longest such pause.
    pub close_max: Span,
    /// How long a lease may stay unproven before that is reported.
    pub drain_overdue: Span,
    /// How long a worker may say nothing about a lease that it was told to return before it is fenced.
    /// Longer than the link's lease, so that a dead link is found as such first.
    pub drain_fence: Span,
    /// How long a lease may stay unproven in all, though its worker says that it is still closing it.
    pub drain_max: Span,
}

impl Limits {
    /// How many tokens a reader takes before that is worth a message: half of what may be unread, so that whoever reads steadily
    /// is never waited for.
    #[must_use]
    pub fn read_step(&self) -> u32 {
        (self.unread_tokens / 2).max(1)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            queue: Span::from_millis(10_000),
            reserve: Span::from_millis(2_000),
            prefill_stall: Span::from_millis(10_000),
            pull: Span::from_millis(10_000),
            token_stall: Span::from_millis(10_000),
            unread_tokens: 256,
            max_faults: 4,
            requeue_first: Span::from_millis(25),
            requeue_max: Span::from_millis(1_000),
            close_first: Span::from_millis(100),
            close_max: Span::from_millis(2_000),
            drain_overdue: Span::from_millis(1_000),
            drain_fence: Span::from_millis(3_000),
            drain_max: Span::from_millis(30_000),
        }
    }
}

/// The bounds of the [`Desk`](crate::Desk).
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct DeskLimits {
    /// How many rooms may wait that never had credit; beyond it new ones are refused. Rooms that come back
    /// after a failed attempt may wait up to twice as many in all.
    pub queue_rooms: usize,
    /// How many prefills may be under way at one worker, so that what waits, waits here.
    pub prefills_per_worker: u32,
    /// How many tokens of an answer are counted into the blocks promised for it. Longer answers grow by
    /// what is free then.
    pub promised_answer_tokens: u32,
    /// How long a needed role may be without any worker before rooms are refused for it, which may come again.
    pub no_worker_grace: Span,
    /// The same for a room whose answer the client has begun to read, and which cannot come again: a worker that only
    /// restarts, or was frozen for a while, is back sooner.
    pub begun_grace: Span,
    /// How often a waiting room may be passed by others that fit where it does not. Then all wait for it.
    pub max_passed: u32,
    /// How many waiting rooms are looked at in one search for one that fits.
    pub scan_rooms: usize,
    /// For how long a promise is held against what a worker advertises as free: an advertisement that was
    /// under way does not know of it.
    pub settle: Span,
}

impl Default for DeskLimits {
    fn default() -> Self {
        Self {
            queue_rooms: 1_024,
            prefills_per_worker: 4,
            promised_answer_tokens: 256,
            no_worker_grace: Span::from_millis(1_000),
            begun_grace: Span::from_millis(30_000),
            max_passed: 64,
            scan_rooms: 128,
            settle: Span::from_millis(500),
        }
    }
}
