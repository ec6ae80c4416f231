//! A load generator for any server that speaks OpenAI's API over plain HTTP/1.1: what it costs must not be the server's, so it is meant to run
//! as a process of its own (`bench load`), on one thread.
//!
//! Output tokens are those that the server counts in its last event (`stream_options.include_usage`), never events: several tokens may come in
//! one. Times are taken when bytes have been read, once for all that came together.
//!
//! Three loops, all bounded: *closed*, in which so many clients each ask again once they are answered; *open*, which asks at a fixed rate
//! whatever becomes of it; and *hold*, which opens streams one after the other and then has them all open at once.

mod apart;
mod exchange;
mod hist;
mod plan;
mod prompt;
mod report;
mod run;
mod sse;
#[cfg(test)]
mod tests;

pub(super) use apart::{ALL_OPEN, Apart};
pub(super) use exchange::{Client, Watch};
pub use hist::Histogram;
pub use plan::{Endpoint, Load};
pub use report::Report;
pub(super) use report::Tally;
pub use run::run;
