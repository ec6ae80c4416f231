//! How much of a stream h3 may read before something comes of it.
//!
//! h3 keeps an unfinished frame in memory, whatever its length, and says nothing meanwhile. What reads a stream for it counts
//! here, and stops reading when too much has come; whoever polls h3 then sees that it waits for what it will not get.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Counts what is read of a stream. Clones count together.
#[derive(Debug, Clone)]
pub(super) struct Meter(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    most_bytes: usize,
    left_bytes: AtomicUsize,
    withheld: AtomicBool,
    ended: AtomicBool,
}

impl Meter {
    /// Lets this many bytes pass between refills.
    pub(super) fn new(most_bytes: usize) -> Self {
        Self(Arc::new(Counts {
            most_bytes,
            left_bytes: AtomicUsize::new(most_bytes),
            withheld: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }))
    }

    /// How much may be read now; asked at 0, the reader is to read nothing.
    pub(super) fn left_bytes(&self) -> usize {
        let left = self.0.left_bytes.load(Ordering::SeqCst);
        self.0.withheld.store(left == 0, Ordering::SeqCst);
        left
    }

    /// So much was read.
    pub(super) fn spend(&self, bytes: usize) {
        let rest = |left: usize| Some(left.saturating_sub(bytes));
        // Cannot fail: the closure always gives a value.
        let _ = self
            .0
            .left_bytes
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, rest);
    }

    /// What was read has been of use: as much again may be.
    pub(super) fn refill(&self) {
        self.0.left_bytes.store(self.0.most_bytes, Ordering::SeqCst);
        self.0.withheld.store(false, Ordering::SeqCst);
    }

    /// The reader was told to read nothing: whoever waits for it waits in vain until a refill.
    pub(super) fn withheld(&self) -> bool {
        self.0.withheld.load(Ordering::SeqCst)
    }

    /// The stream's end has been read.
    pub(super) fn end(&self) {
        self.0.ended.store(true, Ordering::SeqCst);
    }

    pub(super) fn ended(&self) -> bool {
        self.0.ended.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_is_stopped_until_a_refill() {
        let meter = Meter::new(10);
        meter.spend(9);
        assert_eq!(meter.left_bytes(), 1);
        assert!(!meter.withheld());
        meter.spend(5);
        assert!(!meter.withheld(), "nobody has asked for more");
        assert_eq!(meter.left_bytes(), 0);
        assert!(meter.withheld());
        meter.refill();
        assert!(!meter.withheld());
        assert_eq!(meter.left_bytes(), 10);
    }
}
