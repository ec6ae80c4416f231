//! Figures of one link.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Figures of one link, since it came up.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct LinkStats {
    /// Frames received, those that were dropped included.
    pub frames_in: u64,
    /// Frames given to QUIC.
    pub frames_out: u64,
    /// Bytes of frames received, headers included.
    pub bytes_in: u64,
    /// Bytes of frames given to QUIC, headers included.
    pub bytes_out: u64,
    /// Frames received and dropped, because they were unknown, malformed or out of bounds.
    pub dropped_in: u64,
    /// Frames waiting to be given to QUIC.
    pub queued_frames: usize,
    /// Bytes of them.
    pub queued_bytes: usize,
    /// QUIC's estimate of the time to the peer and back.
    pub rtt: Duration,
}

/// What is counted.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    frames_in: AtomicU64,
    frames_out: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    dropped_in: AtomicU64,
}

impl Counters {
    pub(crate) fn received(&self, bytes: usize) {
        self.frames_in.fetch_add(1, Ordering::Relaxed);
        self.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self, frames: usize, bytes: usize) {
        self.frames_out.fetch_add(frames as u64, Ordering::Relaxed);
        self.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn dropped(&self) {
        self.dropped_in.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self, queued_frames: usize, queued_bytes: usize, rtt: Duration) -> LinkStats {
        LinkStats {
            frames_in: self.frames_in.load(Ordering::Relaxed),
            frames_out: self.frames_out.load(Ordering::Relaxed),
            bytes_in: self.bytes_in.load(Ordering::Relaxed),
            bytes_out: self.bytes_out.load(Ordering::Relaxed),
            dropped_in: self.dropped_in.load(Ordering::Relaxed),
            queued_frames,
            queued_bytes,
            rtt,
        }
    }
}
