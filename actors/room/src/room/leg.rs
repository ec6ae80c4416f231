//! A leg: one worker's part in one attempt, from the promise of credit until its lease is proven returned.
//!
//! ```text
//! Promised ──first order──▶ Open ──Close or Release──▶ Closing ──proof──▶ gone
//!     └── nothing was sent: gone at once
//! ```
//!
//! While it is closing it is told again and again, with growing pauses. It is reported when overdue, and fenced when
//! its worker says nothing. A worker that says it is still closing (bytes in flight pin the blocks) gets longer.

use crate::command::Order;
use crate::config::Limits;
use crate::id::{Generation, NodeId};
use crate::time::{Span, Time};

/// No pause is shorter, whatever the limits say: what is due again at once is due for ever.
const SHORTEST: Span = Span::from_millis(1);

#[derive(Clone, Debug)]
pub(super) struct Leg {
    pub(super) worker: NodeId,
    pub(super) generation: Generation,
    pub(super) state: LegState,
}

#[derive(Clone, Debug)]
pub(super) enum LegState {
    /// Credit was granted, nothing was sent.
    Promised,
    /// An order was sent: the worker may hold a lease.
    Open,
    /// It was told to return the lease.
    Closing(Closing),
}

#[derive(Clone, Debug)]
pub(super) struct Closing {
    /// What is repeated: `Close` or `Release`.
    pub(super) order: Order,
    /// How often it was sent.
    pub(super) told: u32,
    again_at: Time,
    pause: Span,
    /// `None` once it was said.
    overdue_at: Option<Time>,
    fence_at: Time,
    /// Whatever the worker says, it is fenced then.
    fence_by: Time,
}

/// What is due at a closing leg.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(super) enum Due {
    /// Repeat the order: it is told so often then.
    Tell { order: Order, told: u32 },
    /// Report that it takes too long; it was told so often.
    Overdue(u32),
    /// Fence the worker.
    Fence,
}

impl Leg {
    fn closing(&self) -> Option<&Closing> {
        match &self.state {
            LegState::Closing(closing) => Some(closing),
            LegState::Promised | LegState::Open => None,
        }
    }

    /// When something is due next.
    pub(super) fn timer(&self) -> Option<Time> {
        self.closing().map(Closing::timer)
    }

    /// When its worker is fenced, if nothing more is heard of it.
    pub(super) fn fence_at(&self) -> Option<Time> {
        self.closing().map(|closing| closing.fence_at)
    }
}

impl Closing {
    /// The order has just been sent for the first time.
    pub(super) fn new(order: Order, limits: &Limits, now: Time) -> Self {
        Self {
            order,
            told: 1,
            again_at: now + limits.close_first,
            pause: limits.close_first,
            overdue_at: Some(now + limits.drain_overdue),
            fence_at: now + limits.drain_fence,
            fence_by: now + limits.drain_max,
        }
    }

    fn timer(&self) -> Time {
        let next = self.again_at.min(self.fence_at);
        self.overdue_at.map_or(next, |at| at.min(next))
    }

    /// The worker is alive and at it.
    pub(super) fn is_held(&mut self, limits: &Limits, now: Time) {
        self.fence_at = (now + limits.drain_fence).min(self.fence_by);
    }

    /// The next thing due by `now`, once; it is due again later.
    pub(super) fn due(&mut self, limits: &Limits, now: Time) -> Option<Due> {
        if self.overdue_at.is_some_and(|at| at <= now) {
            self.overdue_at = None;
            return Some(Due::Overdue(self.told));
        }
        if self.fence_at <= now {
            self.fence_at = now + limits.drain_fence.max(SHORTEST);
            self.fence_by = self.fence_by.max(self.fence_at);
            return Some(Due::Fence);
        }
        if self.again_at <= now {
            self.pause = self.pause.doubled().min(limits.close_max).max(SHORTEST);
            self.again_at = now + self.pause;
            self.told = self.told.saturating_add(1);
            return Some(Due::Tell {
                order: self.order,
                told: self.told,
            });
        }
        None
    }
}
