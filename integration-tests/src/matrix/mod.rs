//! The fault matrix: faults that users of disaggregated serving met in production, injected into real processes that move real KV over UCX.
//!
//! A [`Cell`] is one fault at one moment, with what must be true after it and by when. The [runner](run) starts the cluster that the cell
//! needs (and keeps it for the next ones), runs the cell, and then demands what holds after every fault: see `invariants`. A cell panics
//! with what is wrong, as tests do; the runner catches that, says which cell it was and goes on with a fresh cluster.
//!
//! Two times are measured of each run, both from the injection: until the client has what is promised to it (its end, or for a stream that
//! survives, its next token), and until every block is back on every worker that lives.

mod cell;
mod ctx;
mod guests;
mod intruder;
mod invariants;
mod load;
mod phases;
mod report;
mod rows;
mod runner;
mod setup;
mod streams;
mod worlds;

pub use cell::{Bound, Cell, Measured, Run};
pub use ctx::Ctx;
pub use report::{Report, RunResult, Summary};
pub use rows::{NOT_HERE, all, chosen, smoke};
pub use runner::{Options, run};
pub use setup::{Setup, Starting};
