//! Bugs of this field, planted in our own code on purpose: what the tests of whole clusters must find.
//!
//! A [`Bug`] stands at one or a few places of the product, each one line: `if planted!(FreeOnAbort) { .. }`. Without the
//! cargo feature `planted` of the crate that macro is the constant `false`, and this crate is no part of the build.
//! With it nothing is different either, until a bug is selected:
//!
//! * [`plant`] selects one for the calling thread, for as long as its guard lives: for simulations, which are on one
//!   thread, so that several can run beside each other;
//! * the environment variable [`VARIABLE`] selects one for every thread of a process that has not called [`plant`]:
//!   for real processes, and for the tests that exist without knowing of any of this.

mod bug;
mod select;

pub use bug::{Bug, UnknownBug};
pub use select::{Planted, VARIABLE, is, plant};
