//! The phases of a room at its owner.

/// A phase without its data: what is shown, counted and put into outcomes.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum PhaseKind {
    /// Waits for credit. Nothing was started.
    Queued,
    /// Waits for decode to grant blocks and a slot.
    Reserving,
    /// The prompt is being computed.
    Prefilling,
    /// Decode is pulling the KV.
    Pulling,
    /// Tokens are streaming.
    Decoding,
    /// The outcome is fixed; leases are being proven returned.
    Draining,
    /// Nothing is left.
    Ended,
}
