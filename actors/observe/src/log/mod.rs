//! An event as a line of the log. What a level means:
//!
//! * `error`: a part of this program failed: an owner died, an engine is down, a worker ends for good;
//! * `warn`: something was not as it should be, and was dealt with: a timeout, a fence, a lost worker, a failed request;
//! * `info`: what an operator wants to have read later: outcomes, failed attempts, links that come and go;
//! * `debug`: every other step. Tokens and engine steps have no lines: there are too many, and metrics have them.
//!
//! Targets are `runtime::room`, `runtime::stay` and `runtime::node`, to filter by.

mod node;
mod room;
mod stay;

use crate::recorder::Told;

/// Writes it.
pub(crate) fn write(told: &Told<'_>) {
    match told {
        Told::Room {
            event, facts, state, ..
        } => room::write(event, facts, state),
        Told::Stay { event, facts, .. } => stay::write(event, *facts),
        Told::Node(event) => node::write(&event.what),
    }
}
