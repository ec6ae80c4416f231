//! The KV transfer of a simulated cluster: [`kv::KvTransfer`] under virtual time, with faults.
//!
//! It stands for UCX between machines. A [`Network`] joins the transfers of all workers; a block takes its time to
//! arrive, so a read is *in flight* for a while, and meanwhile the path may be cut, either side may freeze or die, and
//! single reads may go wrong in every way of [`Fault`]. What it owes its users is what `kv-ucx` owes them:
//!
//! * a source answers only while the offer stands and key and capability match (decided by [`kv::OfferTable`], the same
//!   code as everywhere), and keeps the blocks pinned until its sends have completed or their endpoint is closed;
//! * a reader's blocks stay pinned until [`kv::KvEvent::ReadEnded`]: after a cancellation or any failure that is told
//!   only when the endpoint is really closed, and until then bytes may still land in them;
//! * what makes no progress for [`Config::no_progress`] has its endpoint closed by force, on either side, by local
//!   knowledge alone.
//!
//! A piece of data is read out of the source's memory when it *lands*, as an RDMA read would, and its checksum is of when
//! it was posted. So whoever writes to a pinned block, at either side, is found: [`Network::violations`].
//!
//! Everything happens on the caller's thread or on the network's one task, in an order that depends on the seed alone.
//! Nothing draws from another member's random numbers, so that a dead node changes nobody else's luck.

mod closing;
mod config;
mod faults;
mod flow;
mod handle;
mod members;
mod network;
mod pins;
mod queue;
mod reader;
mod source;
mod switches;
mod world;

pub(crate) use config::Config;
pub(crate) use faults::{Death, Faults};
pub(crate) use members::Place;
pub(crate) use network::Network;

#[cfg(test)]
use faults::Fault;
#[cfg(test)]
use handle::SimTransfer;

#[cfg(test)]
mod tests;
