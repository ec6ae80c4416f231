//! A whole cluster on one thread, under virtual time, with faults from a seed.
//!
//! The real actors, the real wire and real quinn run over a simulated network; engines are the real scheduler with the mock backend,
//! which checks every byte of KV it reads; KV moves over a simulated data path. A [`Plan`] is drawn from a seed: the cluster, its load
//! and what goes wrong when. [`run`] plays it: a phase under faults, the healing, and then everything must come back and the cluster
//! must serve as before. What was seen is [`Evidence`], on which the invariants are checked, each in a file of its own.
//!
//! Nothing here is random but the seed: two runs of one seed have the same trace, in any process.
//!
//! [`Evidence`]: evidence::Evidence

pub mod client;
mod cluster;
mod count;
pub mod evidence;
pub mod fault;
mod hunt;
pub mod invariant;
mod machine;
mod many;
mod network;
mod pace;
mod plan;
mod random;
mod run;
mod trace;
pub mod transfer;
mod witness;

pub use hunt::{Hunted, hunt};
pub use many::{Broken, TEN_MINUTES, Totals, run_many, threads};
pub use network::Weather;
pub use plan::{Plan, Spans};
pub use run::{Report, run};
pub use witness::Said;
