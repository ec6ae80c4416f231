//! One answer at the source: which pieces are still to be sent. No I/O.

use std::{collections::VecDeque, time::Instant};

use kv::{BlockIndex, ReadId, Run, TransferKey, coalesce};

use super::EpId;
use crate::message::ReadMessage;

/// Largest piece, in bytes: long enough that descriptors do not count, short enough that a stop is quick and progress
/// is seen often.
const MAX_PIECE_BYTES: usize = 1 << 20;
/// Pieces of one answer in flight.
const WINDOW: u32 = 4;

/// An answer under way. Its offer stays pinned until nothing is in flight and nothing is to come.
pub(super) struct Serving {
    pub(super) ep: EpId,
    /// The reader's name for its read.
    pub(super) read: ReadId,
    pub(super) key: TransferKey,
    /// Position in the offer of the read's first block.
    pub(super) from: u32,
    pub(super) progress: Instant,
    to_send: VecDeque<Run>,
    in_flight: u32,
}

impl Serving {
    /// The answer to `message`, whose blocks here are `source`.
    pub(super) fn new(
        message: &ReadMessage,
        source: &[BlockIndex],
        block_bytes: usize,
        ep: EpId,
        now: Instant,
    ) -> Self {
        let to_send = pieces(source, &message.runs, block_bytes);
        Self {
            ep,
            read: message.id,
            key: message.key,
            from: message.from,
            progress: now,
            to_send,
            in_flight: 0,
        }
    }

    /// The next piece, if one may be sent now.
    pub(super) fn next(&mut self) -> Option<Run> {
        if self.in_flight >= WINDOW {
            return None;
        }
        let run = self.to_send.pop_front()?;
        self.in_flight += 1;
        Some(run)
    }

    /// A piece's send has ended.
    pub(super) fn sent(&mut self, now: Instant) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.progress = now;
    }

    /// Sends no more.
    pub(super) fn stop(&mut self) {
        self.to_send.clear();
    }

    /// Whether more could be sent now.
    pub(super) fn ready(&self) -> bool {
        self.in_flight < WINDOW && !self.to_send.is_empty()
    }

    /// Whether the pin can go.
    pub(super) fn ended(&self) -> bool {
        self.in_flight == 0 && self.to_send.is_empty()
    }
}

/// The fewest pieces that are contiguous on both sides: a destination where each of the reader's runs is contiguous
/// and no two runs touch stands for the one that only the reader knows.
fn pieces(source: &[BlockIndex], runs: &[u32], block_bytes: usize) -> VecDeque<Run> {
    let max = u32::try_from(MAX_PIECE_BYTES / block_bytes.max(1))
        .unwrap_or(u32::MAX)
        .max(1);
    let mut into = Vec::with_capacity(source.len());
    let mut next = 0;
    for &run in runs {
        into.extend(next..next + run);
        next += run + 1;
    }
    coalesce(source, &into, max).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &[u32], runs: &[u32], block_bytes: usize, want: &[(u32, u32, u32)]) {
        let got: Vec<_> = pieces(source, runs, block_bytes)
            .iter()
            .map(|r| (r.at, r.source, r.count))
            .collect();
        assert_eq!(got, want);
    }

    #[test]
    fn pieces_are_contiguous_on_both_sides_and_bounded() {
        check(&[1, 2, 3, 4], &[4], 8, &[(0, 1, 4)]);
        check(&[1, 2, 3, 4], &[1, 3], 8, &[(0, 1, 1), (1, 2, 3)]);
        check(&[1, 2, 4, 5], &[4], 8, &[(0, 1, 2), (2, 4, 2)]);
        check(&[1, 2, 3], &[3], MAX_PIECE_BYTES / 2, &[(0, 1, 2), (2, 3, 1)]);
        check(&[1, 2], &[2], MAX_PIECE_BYTES * 2, &[(0, 1, 1), (1, 2, 1)]);
    }

    #[test]
    fn the_window_holds_and_a_stop_waits_for_what_is_in_flight() {
        let key = TransferKey {
            gateway: 1,
            seq: 1,
            generation: 1,
        };
        let runs = vec![1; 8];
        let message = ReadMessage {
            id: ReadId(1),
            key,
            capability: 0,
            from: 0,
            block_bytes: 8,
            runs,
        };
        let now = Instant::now();
        let mut serving = Serving::new(&message, &[0, 1, 2, 3, 4, 5, 6, 7], 8, EpId(1), now);
        let mut sent = 0;
        while serving.next().is_some() {
            sent += 1;
        }
        assert_eq!(sent, WINDOW);
        serving.stop();
        assert!(!serving.ended() && !serving.ready());
        for _ in 0..sent {
            serving.sent(now);
        }
        assert!(serving.ended());
    }
}
