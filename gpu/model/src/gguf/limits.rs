//! Bounds on what a header may ask for, far above any real model.

/// Metadata entries, and tensors.
pub(super) const ENTRIES: u64 = 1 << 17;
/// Array elements in the whole metadata.
pub(super) const ELEMENTS: u64 = 1 << 22;
/// Bytes of a key or a tensor's name.
pub(super) const NAME_BYTES: u64 = 1 << 16;
/// Bytes of a text value (a chat template, a licence).
pub(super) const TEXT_BYTES: u64 = 1 << 24;
/// Dimensions of a tensor.
pub(super) const DIMENSIONS: u32 = 4;
/// Nesting of arrays.
pub(super) const DEPTH: u32 = 2;
/// Alignment of tensor data.
pub(super) const ALIGNMENT: u64 = 1 << 20;
