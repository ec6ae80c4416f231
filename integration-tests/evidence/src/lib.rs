//! The page of evidence: what was run to show that every request ends once, in time, and gives everything back.
//!
//! Simulations, the hunt for planted bugs, models, the fault matrix, fuzzing and mutation testing each write what came of
//! them into the target folder, with a [`Stamp`] that says of which code and on which machine. [`make`] keeps what is needed of
//! that in `docs/evidence`, and makes `docs/evidence.md` from there and from nothing else: no figure on it is typed by hand, and a
//! test makes it anew and compares.
//!
//! A *part* (`parts`) is one of these sources: what it keeps, what it has to show, and its tables.

mod claim;
mod files;
mod page;
mod parts;
mod stamp;
mod text;

pub use files::{Error, make, root, write};
pub use page::page;
pub use stamp::Stamp;
