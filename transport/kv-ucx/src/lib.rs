//! KV moves over UCX: [`kv::KvTransfer`] by active messages alone, with UCX loaded at run time.
//!
//! [`Ucx::load`] finds the library (or [`fetch_wheel`] gets one), [`UcxTransfer::start`] opens it on a progress
//! thread that owns everything of UCX. The reader asks by message, the source answers by message while its offer
//! stands, and each side names addresses in its own memory only; a context without UCX's one-sided features makes
//! that so for any peer. No error or success of UCX is believed without an own deadline and an own checksum.
//!
//! What absolutely holds: the end of a read, or of a withdrawn offer, is told only after UCX's callbacks for its
//! operations have run, or after the UCX worker they ran on has been destroyed.

mod config;
mod engine;
mod fetch;
mod load;
mod message;
mod port;
mod region;
mod shared;
mod sys;
mod transfer;

pub use config::UcxConfig;
pub use fetch::{FetchError, cached_library, fetch_wheel};
pub use load::{LoadError, Ucx};
pub use port::OpenError;
pub use transfer::{StartError, UcxTransfer};
