//! Holds a mock's engine in a step until it is let go.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::PATIENCE;

/// Stands before every step of the engines that were made with it.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// How many more steps may pass; none: all.
    left: Mutex<Option<u64>>,
    changed: Condvar,
    /// Engines that stand before it.
    held: AtomicUsize,
}

impl Gate {
    /// Lets so many more steps pass, and holds the next.
    pub(crate) fn close_after(&self, steps: u64) {
        self.set(Some(steps));
    }

    /// Lets everything pass.
    pub(crate) fn open(&self) {
        self.set(None);
    }

    fn set(&self, left: Option<u64>) {
        *self.left.lock().unwrap() = left;
        self.changed.notify_all();
    }

    /// Whether an engine is held in a step: no order takes effect there.
    pub(crate) fn holds(&self) -> bool {
        *self.left.lock().unwrap() == Some(0) && self.held.load(Ordering::SeqCst) > 0
    }

    fn pass(&self) {
        self.held.fetch_add(1, Ordering::SeqCst);
        let left = self.left.lock().unwrap();
        let (mut left, _) = self
            .changed
            .wait_timeout_while(left, PATIENCE, |left| *left == Some(0))
            .unwrap();
        self.held.fetch_sub(1, Ordering::SeqCst);
        if let Some(left) = left.as_mut() {
            *left = left.saturating_sub(1);
        }
    }

    /// How a mock with this gate passes its time.
    pub(crate) fn sleep(self: &Arc<Self>) -> mock::Sleep {
        let gate = Arc::clone(self);
        Arc::new(move |span: Duration| {
            if !span.is_zero() {
                std::thread::sleep(span);
            }
            gate.pass();
        })
    }
}
