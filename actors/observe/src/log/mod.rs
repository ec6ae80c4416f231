//! An event as a line of the log. What a level means:
//!
//! * `error`: a part of this program failed: an owner died, an engine is down, a worker ends for good;
//! * `warn`: something was not as it should be, and was dealt with: a timeout, a fence, a lost worker, a failed attempt or request;
//! * `info`: what an operator wants to have read later: outcomes, links that come and go;
//! * `debug`: every other step. Tokens and engine steps have no lines: there are too many, and metrics have them.
//!
//! Workers have their names; `node` is the incarnation. Targets are `runtime::room`, `runtime::stay` and `runtime::node`, to filter by.

mod node;
mod overdue;
mod room;
mod stay;

use crate::recorder::Told;
use crate::roster::Roster;
use overdue::Overdue;

/// A node's log.
#[derive(Debug, Default)]
pub(crate) struct Log {
    overdue: Overdue,
}

impl Log {
    /// Writes it.
    pub(crate) fn write(&self, told: &Told<'_>, roster: &Roster) {
        match told {
            Told::Room {
                event, facts, state, ..
            } => room::write(event, facts, state, roster),
            Told::Stay { event, facts, .. } => stay::write(event, *facts, &self.overdue),
            Told::Node(event) => node::write(&event.what, roster),
        }
    }
}
