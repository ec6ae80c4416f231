//! The legs of a room together: opened by the first order, told to return, and gone when there is proof.

use crate::command::{Command, Credit, Order};
use crate::event::{Happening, Proof};
use crate::id::{Attempt, Generation, NodeId};
use crate::outcome::AttemptError;
use crate::room::Room;
use crate::room::leg::{Closing, LegState};
use crate::time::Time;

impl Room {
    pub(super) fn leg_index(&self, worker: NodeId, generation: Generation) -> Option<usize> {
        self.legs
            .iter()
            .position(|leg| leg.worker == worker && leg.generation == generation)
    }

    /// Sends an order of the current attempt; from then on the worker may hold a lease.
    pub(super) fn send(&mut self, now: Time, to: NodeId, order: Order) {
        if let Some(index) = self.leg_index(to, self.generation)
            && matches!(self.legs[index].state, LegState::Promised)
        {
            self.legs[index].state = LegState::Open;
            self.say(now, Happening::LegOpened { worker: to });
        }
        self.outbox.command(Command::Send {
            to,
            attempt: self.attempt(),
            order,
        });
    }

    /// Begins to close an open leg, by `Close` or `Release`.
    pub(super) fn tell_to_return(&mut self, index: usize, order: Order, now: Time) {
        let leg = &mut self.legs[index];
        leg.state = LegState::Closing(Closing::new(order, &self.limits, now));
        let attempt = Attempt {
            room: self.id,
            generation: leg.generation,
        };
        self.outbox.command(Command::Send {
            to: leg.worker,
            attempt,
            order,
        });
    }

    /// A leg is proven returned, or was never opened.
    pub(super) fn leg_returned(&mut self, now: Time, index: usize, by: Option<Proof>) {
        let leg = self.legs.swap_remove(index);
        let attempt = Attempt {
            room: self.id,
            generation: leg.generation,
        };
        if !planted!(CreditLeakedByPull if self.last_error == Some(AttemptError::PullFailed)) {
            self.outbox.command(Command::GiveBack {
                attempt,
                worker: leg.worker,
                credit: Credit::All,
            });
        }
        if let Some(by) = by {
            self.say(
                now,
                Happening::LegReturned {
                    worker: leg.worker,
                    of: leg.generation,
                    by,
                },
            );
        }
        self.end_if_returned(now);
    }

    /// Closes what is open of the current attempt. What was only promised is given back.
    pub(super) fn close_current_legs(&mut self, now: Time) {
        for index in (0..self.legs.len()).rev() {
            let leg = &self.legs[index];
            match leg.state {
                LegState::Promised => self.leg_returned(now, index, None),
                LegState::Open if planted!(CloseForgotten if index > 0) => {
                    self.leg_returned(now, index, None);
                }
                LegState::Open => self.tell_to_return(index, Order::Close, now),
                LegState::Closing(_) => {}
            }
        }
    }
}
