//! A whole cluster on one thread, under virtual time, with faults from a seed.
//!
//! The real actors, the real wire and real quinn run over a simulated network; engines are the real scheduler with the mock backend,
//! which checks every byte of KV it reads; KV moves over a simulated data path. Nothing here is random but the seed: two runs of one seed
//! have the same trace, in any process.
//!
//! How a run goes, and in which order to read:
//!
//! 1. `plan`, `fault`: out of the seed come the cluster, its load, and what goes wrong when.
//! 2. `run`: the director plays it on a runtime of its own: a probe of the new cluster, a phase under faults, the healing; then everything
//!    must come back, and the same probe must be answered as fast.
//! 3. `cluster`, `machine`: the machines, their power, and each fault done to them. `network` is their UDP, `transfer` their data path,
//!    `pace` their engines, `client` whoever asks.
//! 4. `trace` makes one number of all that is logged; `witness` keeps what of it invariants are about; `panics` what nobody injected.
//! 5. `evidence`: all that is left in the end. `invariant`: what must hold of it, each in a file of its own. `report`: what came of it.
//!
//! [`run_many`] does that for many seeds at a time, and [`hunt`] with bugs planted in the product, which it has to find.

mod client;
mod cluster;
mod count;
mod evidence;
mod fault;
mod hunt;
mod invariant;
mod machine;
mod many;
mod network;
mod pace;
mod panics;
mod plan;
mod random;
mod report;
mod run;
mod trace;
mod transfer;
mod witness;

pub use hunt::{Hunted, hunt};
pub use invariant::Violation;
pub use many::{Broken, TEN_MINUTES, Totals, run_many};
pub use plan::Spans;
pub use report::Report;
pub use run::run;
pub use witness::Said;
