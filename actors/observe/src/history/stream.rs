//! The batches of an answer's tokens, summed up.

use room::{Span, Time};

/// How the tokens came.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct Stream {
    /// When the first came.
    pub first: Option<Time>,
    /// When the last came.
    pub last: Option<Time>,
    /// Batches.
    pub batches: u32,
    /// Tokens.
    pub tokens: u32,
    /// The longest wait between two batches.
    pub longest_gap: Span,
    /// When that wait ended.
    pub longest_until: Option<Time>,
}

impl Stream {
    /// A wait of this length or more, for the next tokens, is told by itself.
    pub const STALL: Span = Span::from_millis(1_000);

    /// A batch came. Returns how long after the one before it, if there was one.
    pub fn batch(&mut self, at: Time, count: u32) -> Option<Span> {
        let gap = self.last.map(|last| at - last);
        self.first.get_or_insert(at);
        self.last = Some(at);
        self.batches = self.batches.saturating_add(1);
        self.tokens = self.tokens.saturating_add(count);
        if let Some(gap) = gap.filter(|gap| *gap > self.longest_gap) {
            self.longest_gap = gap;
            self.longest_until = Some(at);
        }
        gap
    }
}
