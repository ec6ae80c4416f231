//! Where a worker's backend comes back to when the worker changes its role, so that its weights stay loaded.
//!
//! A backend is lent to an engine. It comes back when the engine ends in order, and is lent again once nobody else has its KV pool: what the
//! last transfer of the old incarnation still had in flight has ended then, by proof. One whose step failed, or hangs, never comes back.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use engine::{Backend, BackendError, Interrupt, KvPool, ModelSpec, Sampled, Slice};

/// Between two looks at who has the pool.
const LOOK: Duration = Duration::from_millis(5);

/// A backend, and the numerics that it names.
pub(super) type Kept = (Box<dyn Backend>, String);

/// The place for one backend. Cloning gives the same one.
#[derive(Clone, Default)]
pub(super) struct Shelf(Arc<Place>);

#[derive(Default)]
struct Place {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Counts those that were lent: what an earlier borrower brings is of no use.
    lent: u64,
    numerics: String,
    /// Others that have the pool of the one that was lent last, for as long as it exists.
    holders: usize,
    is_out: bool,
    back: Option<Box<dyn Backend>>,
}

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lends it; what was here is dropped.
    pub(super) fn lend(&self, (backend, numerics): Kept) -> Box<dyn Backend> {
        let holders = holders(&*backend);
        let mut state = self.lock();
        *state = State {
            lent: state.lent + 1,
            numerics,
            holders,
            is_out: true,
            back: None,
        };
        Box::new(Lent {
            backend: Some(backend),
            nth: state.lent,
            sound: true,
            shelf: self.clone(),
        })
    }

    /// Nothing of what was lent is wanted any more.
    pub(super) fn clear(&self) {
        let mut state = self.lock();
        state.lent += 1;
        state.is_out = false;
        // Dropped outside of the lock: it may be large.
        let old = state.back.take();
        drop(state);
        drop(old);
    }

    /// The one that was lent last, once it has come back and nobody else has its pool; none if it does not come within `patience`.
    pub(super) fn take(&self, patience: Duration) -> Option<Kept> {
        let until = Instant::now() + patience;
        let waited = self
            .0
            .changed
            .wait_timeout_while(self.lock(), patience, |state| state.is_out);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let backend = state.back.take()?;
        let (numerics, before) = (std::mem::take(&mut state.numerics), state.holders);
        drop(state);
        while holders(&*backend) > before {
            if Instant::now() >= until {
                return None;
            }
            sleep(LOOK);
        }
        Some((backend, numerics))
    }
}

/// Who has the pool of a backend, itself included.
fn holders(backend: &dyn Backend) -> usize {
    Arc::strong_count(&backend.pool()).saturating_sub(1)
}

/// A backend that goes back.
struct Lent {
    /// None only while it is dropped.
    backend: Option<Box<dyn Backend>>,
    nth: u64,
    /// Its last step went well.
    sound: bool,
    shelf: Shelf,
}

impl Lent {
    fn backend(&self) -> &dyn Backend {
        &**self.backend.as_ref().expect("it is there until the drop")
    }
}

impl Backend for Lent {
    fn spec(&self) -> &ModelSpec {
        self.backend().spec()
    }

    fn pool(&self) -> Arc<KvPool> {
        self.backend().pool()
    }

    fn interrupt(&self) -> Option<Interrupt> {
        self.backend().interrupt()
    }

    fn step(&mut self, batch: &[Slice<'_>], out: &mut Vec<Sampled>) -> Result<(), BackendError> {
        // A panic leaves it so.
        self.sound = false;
        let backend = self.backend.as_mut().expect("it is there until the drop");
        backend.step(batch, out)?;
        self.sound = true;
        Ok(())
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut state = self.shelf.lock();
        if state.lent == self.nth {
            state.is_out = false;
            if self.sound {
                state.back = self.backend.take();
            }
        }
        drop(state);
        self.shelf.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use engine::Backend;
    use mock::{Faults, MockBackend, MockConfig};

    use super::Shelf;

    const LONG: Duration = Duration::from_secs(30);

    fn backend(faults: Faults) -> Box<dyn Backend> {
        let config = MockConfig {
            faults,
            ..MockConfig::default()
        };
        Box::new(MockBackend::new(config, mock::no_sleep()).expect("a mock"))
    }

    fn lend(shelf: &Shelf, faults: Faults) -> Box<dyn Backend> {
        shelf.lend((backend(faults), "mock".to_owned()))
    }

    #[test]
    fn what_was_lent_comes_back_when_nobody_has_its_pool() {
        let shelf = Shelf::default();
        assert!(shelf.take(LONG).is_none(), "nothing was lent");
        let lent = lend(&shelf, Faults::default());
        let pool = lent.pool();
        let address = Arc::as_ptr(&pool);
        let moves = thread::spawn(move || drop(pool));
        drop(lent);
        let (again, numerics) = shelf.take(LONG).expect("it is back");
        moves.join().expect("it has let go");
        assert_eq!((Arc::as_ptr(&again.pool()), &*numerics), (address, "mock"));
        assert!(shelf.take(LONG).is_none(), "it is taken");

        let lent = shelf.lend((again, numerics));
        let pool = lent.pool();
        drop(lent);
        assert!(shelf.take(Duration::ZERO).is_none(), "somebody moves bytes there");
        drop(pool);
    }

    #[test]
    fn what_is_not_sound_or_comes_late_is_not_taken() {
        let shelf = Shelf::default();
        let mut lent = lend(
            &shelf,
            Faults {
                fail_at_step: Some(1),
                ..Faults::default()
            },
        );
        assert!(lent.step(&[], &mut Vec::new()).is_err());
        drop(lent);
        assert!(shelf.take(LONG).is_none(), "nobody waits for one that is lost");

        let late = lend(&shelf, Faults::default());
        let next = lend(&shelf, Faults::default());
        drop(late);
        assert!(shelf.take(Duration::ZERO).is_none(), "the next one is out");
        drop(next);
        assert!(shelf.take(LONG).is_some());
        let gone = lend(&shelf, Faults::default());
        shelf.clear();
        drop(gone);
        assert!(shelf.take(Duration::ZERO).is_none());
    }
}
