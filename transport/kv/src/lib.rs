//! What a KV move is: one worker publishes blocks under a key and a capability, another asks for them, and only the
//! owner of memory ever names an address in it.
//!
//! * [`KvTransfer`] is the trait; [`InProcess`] moves blocks between workers of one process over an explicit [`Hub`]. The UCX transfer
//!   lives in its own crate. `Faulty`, which tests alone have, wraps any transfer with scripted faults.
//! * [`Account`] with its [`OfferTable`], [`coalesce`] and [`block_checksum`] are the decisions every transfer shares: what may be read,
//!   in which pieces, and how a block that comes out of another process proves which (room, generation, position) it belongs to.
//!
//! Two rules hold for every implementation. A source's blocks are pinned until its sends have completed, told by
//! [`KvEvent::Withdrawn`]; a reader's blocks are pinned until no byte can land any more, told by
//! [`KvEvent::ReadEnded`]. Neither depends on a message from the other side arriving.

#[macro_use]
mod planted;

mod account;
mod checksum;
mod error;
#[cfg(feature = "faults")]
mod faulty;
mod heap;
mod inproc;
mod key;
mod memory;
mod offers;
mod runs;
mod transfer;

pub use account::Account;
pub use checksum::block_checksum;
pub use error::{KvError, OutOfRange, ReadError, Refusal};
#[cfg(feature = "faults")]
pub use faulty::{Fault, Faulty};
pub use heap::HeapMemory;
pub use inproc::{Hub, InProcess};
pub use key::{BlockIndex, ReadId, TransferKey};
pub use memory::KvMemory;
pub use offers::{Offer, OfferTable, Withdrawal};
pub use runs::{Run, coalesce};
pub use transfer::{
    EventSink, KvEvent, KvTransfer, MAX_ADDRESS_BYTES, MAX_BLOCKS, MAX_OFFERS, MAX_READS, Read, ReadStats,
    SourceAddress, Totals,
};
