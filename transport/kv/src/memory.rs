//! The memory a transfer may touch.

use crate::{BlockIndex, OutOfRange};

/// A region of equal blocks, contiguous and block-major: block `b` is the bytes `b * block_bytes ..` from the base.
/// The region lives, at one address, as long as the `Arc` that holds it.
///
/// An implementation checks bounds; it need not check who touches a block when. Whoever calls any of these must hold the block
/// by an offer, a read or a lease, under which nobody writes it while another touches it.
pub trait KvMemory: Send + Sync + 'static {
    /// Size of a block in bytes; never 0.
    fn block_bytes(&self) -> usize;

    /// How many blocks the region has.
    fn blocks(&self) -> u32;

    /// Address of block 0, for transfers that send and receive in place. Whoever uses it keeps the `Arc` and touches
    /// only blocks that its side of an offer or a read has pinned.
    fn base(&self) -> *mut u8;

    /// Copies `bytes.len()` bytes out of block `block`, from byte `offset` of it.
    fn read_into(&self, block: BlockIndex, offset: usize, bytes: &mut [u8]) -> Result<(), OutOfRange>;

    /// Copies `bytes` into block `block`, from byte `offset` of it.
    fn write_from(&self, block: BlockIndex, offset: usize, bytes: &[u8]) -> Result<(), OutOfRange>;
}
