//! What is only counted.

/// Counts since the host was made. Each only grows.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct HostCounters {
    /// Messages of an attempt that is over, or of a generation older than one seen. They changed nothing.
    pub stale: u64,
    /// Messages of an attempt that was never here. They changed nothing.
    pub unknown: u64,
    /// Messages whose effect was there already. They changed nothing.
    pub duplicates: u64,
    /// Messages that do not fit the phase. They changed nothing.
    pub out_of_order: u64,
    /// Reports of the engine or the transfer about something that had ended already. They changed nothing.
    pub late_reports: u64,
    /// Requests for a stay that were refused.
    pub refused: u64,
    /// Stays dropped because a digest did not list them: each is a Close that was lost.
    pub healed_by_digest: u64,
    /// Stays dropped because the link with their owner was over.
    pub ended_with_link: u64,
    /// Stays dropped because a later generation of their room came.
    pub superseded: u64,
    /// Stays that gave up their blocks so that an older one could grow.
    pub evictions: u64,
    /// Stays whose deadline passed.
    pub expired: u64,
    /// Times that the proof was late, and those who owe it were told to stop again.
    pub proofs_overdue: u64,
    /// Transitions dropped because nobody polled them.
    pub transitions_lost: u64,
}
