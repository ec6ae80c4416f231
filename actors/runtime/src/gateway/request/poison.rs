//! How a test makes the owners of requests fail.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};

/// A way for an actor to fail.
#[derive(Clone, Debug)]
pub enum Poison {
    /// It panics.
    Panic,
    /// It does not come back before somebody else is at the barrier as well.
    Hang(Arc<Barrier>),
}

impl Poison {
    pub(super) fn act(self) {
        match self {
            Self::Panic => panic!("a test's poison"),
            Self::Hang(barrier) => drop(barrier.wait()),
        }
    }
}

/// How many of the actors to come will panic as they are born, and how many heirs right after.
#[derive(Debug, Default)]
pub(crate) struct Doom {
    at_birth: AtomicU32,
    after_birth: AtomicU32,
}

impl Doom {
    pub(crate) fn set(&self, at_birth: u32, after_birth: u32) {
        self.at_birth.store(at_birth, Ordering::SeqCst);
        self.after_birth.store(after_birth, Ordering::SeqCst);
    }

    pub(super) fn at_birth(&self) {
        strike(&self.at_birth);
    }

    pub(super) fn after_birth(&self) {
        strike(&self.after_birth);
    }
}

fn strike(left: &AtomicU32) {
    let one_less = |left: u32| left.checked_sub(1);
    let struck = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
    assert!(struck.is_err(), "a test's doom");
}
