//! A small persistent team of threads that runs the same closure over the items of an index range.
//!
//! Who runs which item is left to chance, so closures must give the same result whoever runs them. Between two runs the workers
//! spin for some microseconds (a forward pass is hundreds of short runs), then park; an idle team costs nothing. A run never
//! waits for a parked worker to wake up: the caller takes every item that nobody else has taken, closes the run, and waits only
//! for workers that are inside an item. The threads end when the team is dropped.
#![allow(unsafe_code)]

use std::any::Any;
use std::cell::UnsafeCell;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::{hint, io};

/// How often a worker looks for the next run before it parks: some 20 to 40 µs.
const SPINS_BEFORE_PARKING: u32 = 1_000;
/// How often the caller looks for the end of the last items before it yields its core each time.
const SPINS_BEFORE_YIELDING: u32 = 200;

/// `state` is the run's number in the upper half, this bit while it can be entered, and the number of workers inside.
const OPEN: u64 = 1 << 31;
const INSIDE: u64 = OPEN - 1;
const NEXT_RUN: u64 = 1 << 32;

/// What the present run does. Borrowed from the caller of [`Team::run`], who does not return before it is closed and left.
struct Job {
    work: *const (dyn Fn(usize) + Sync + 'static),
    items: usize,
    grain: usize,
}

struct Shared {
    state: AtomicU64,
    job: UnsafeCell<Option<Job>>,
    next: AtomicUsize,
    /// Workers that are parked or about to.
    parked: AtomicUsize,
    stop: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    door: Mutex<()>,
    bell: Condvar,
}

// SAFETY: `job` is written only by the caller of `run`, while the run is closed and nobody is inside; it is read only by those who
// have entered an open run (the release of OPEN and the acquire of entering order the two). `work` points to a `Sync` closure.
unsafe impl Sync for Shared {}
// SAFETY: as above; the pointer is only followed inside a run.
unsafe impl Send for Shared {}

/// The team. Its owner is its first member.
pub(crate) struct Team {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

impl Team {
    /// A team of `threads` threads, the caller included.
    pub(crate) fn new(threads: NonZeroUsize) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: AtomicU64::new(0),
            job: UnsafeCell::new(None),
            next: AtomicUsize::new(0),
            parked: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            panic: Mutex::new(None),
            door: Mutex::new(()),
            bell: Condvar::new(),
        });
        let mut team = Self {
            shared,
            workers: Vec::new(),
        };
        for i in 1..threads.get() {
            let shared = Arc::clone(&team.shared);
            let worker = thread::Builder::new()
                .name(format!("cpu-{i}"))
                .spawn(move || shared.serve())?;
            team.workers.push(worker);
        }
        Ok(team)
    }

    /// Number of threads, the caller included.
    pub(crate) fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `work(i)` for every `i` in `0..items`, `grain` neighbours at a time, on all threads, and returns when all is done.
    ///
    /// # Panics
    /// When `work` does, after all threads have left it.
    pub(crate) fn run(&mut self, items: usize, grain: usize, work: &(dyn Fn(usize) + Sync)) {
        if self.workers.is_empty() || items <= grain {
            (0..items).for_each(work);
            return;
        }
        // SAFETY: only the lifetime changes; `Closing` sees to it that nobody uses the closure after this function.
        let work =
            unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(work) };
        // SAFETY: no run is open and nobody is inside (the last one was waited for, and `&mut self` is the only way here).
        unsafe { *self.shared.job.get() = Some(Job { work, items, grain }) };
        self.shared.next.store(0, Ordering::Relaxed);
        {
            let _closing = Closing(&self.shared);
            self.shared.open();
            self.shared.take_items();
        }
        if let Some(panic) = lock(&self.shared.panic).take() {
            resume_unwind(panic);
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        drop(lock(&self.shared.door));
        self.shared.bell.notify_all();
        for worker in self.workers.drain(..) {
            // A worker catches the panics of its work and has none of its own.
            let _ = worker.join();
        }
    }
}

/// Closes the run and waits until every worker has left it, also when the caller's own items panic. The wait ends with the items:
/// normally one more for each worker; all that are left where the caller has panicked, because the workers go on with them.
struct Closing<'a>(&'a Shared);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_and(!OPEN, Ordering::AcqRel);
        let mut spins = 0;
        while self.0.state.load(Ordering::Acquire) & INSIDE != 0 {
            spins += 1;
            if spins < SPINS_BEFORE_YIELDING {
                hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
        if thread::panicking() {
            // The caller's own panic is the one that is told; a worker's would come up in the next run.
            drop(lock(&self.0.panic).take());
        }
    }
}

impl Shared {
    /// Opens the next run and wakes who is parked.
    fn open(&self) {
        let run = (self.state.load(Ordering::Relaxed) | OPEN | INSIDE).wrapping_add(1);
        self.state.store(run | OPEN, Ordering::SeqCst);
        if self.parked.load(Ordering::SeqCst) > 0 {
            drop(lock(&self.door));
            self.bell.notify_all();
        }
    }

    /// Runs items until none is left. Only inside an open run.
    fn take_items(&self) {
        // SAFETY: inside a run the job is not written, and its closure lives until all have left.
        let (job, work) = unsafe {
            let Some(job) = &*self.job.get() else { return };
            (job, &*job.work)
        };
        loop {
            let start = self.next.fetch_add(job.grain, Ordering::Relaxed);
            if start >= job.items {
                return;
            }
            (start..job.items.min(start + job.grain)).for_each(work);
        }
    }

    /// The life of a worker.
    fn serve(&self) {
        let mut last = 0;
        while let Some(state) = self.wait_for_run(last) {
            let entered = self
                .state
                .compare_exchange(state, state + 1, Ordering::AcqRel, Ordering::Relaxed);
            if entered.is_err() {
                continue;
            }
            last = state / NEXT_RUN;
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.take_items())) {
                *lock(&self.panic) = Some(panic);
            }
            self.state.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// The state of an open run other than number `last`, or `None` at the end of the team. Spins, then parks; a parked worker is
    /// woken by every run and by the end.
    fn wait_for_run(&self, last: u64) -> Option<u64> {
        let look = || {
            let state = self.state.load(Ordering::SeqCst);
            (state & OPEN != 0 && state / NEXT_RUN != last).then_some(state)
        };
        for _ in 0..SPINS_BEFORE_PARKING {
            if let Some(state) = look() {
                return Some(state);
            }
            if self.stop.load(Ordering::Relaxed) {
                return None;
            }
            hint::spin_loop();
        }
        let mut door = lock(&self.door);
        self.parked.fetch_add(1, Ordering::SeqCst);
        let found = loop {
            if self.stop.load(Ordering::SeqCst) {
                break None;
            }
            if let Some(state) = look() {
                break Some(state);
            }
            door = self.bell.wait(door).unwrap_or_else(PoisonError::into_inner);
        };
        self.parked.fetch_sub(1, Ordering::SeqCst);
        found
    }
}

/// Nothing is done under these locks that could leave their data half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn team(threads: usize) -> Team {
        Team::new(NonZeroUsize::new(threads).unwrap()).unwrap()
    }

    #[test]
    fn every_item_runs_once() {
        for threads in [1, 2, 3, 8] {
            let mut team = team(threads);
            for round in 0..300 {
                let (items, grain) = (round % 37, 1 + round % 5);
                let counts: Vec<AtomicUsize> = (0..items).map(|_| AtomicUsize::new(0)).collect();
                team.run(items, grain, &|i| {
                    counts[i].fetch_add(1, Ordering::Relaxed);
                });
                assert!(
                    counts.iter().all(|c| c.load(Ordering::Relaxed) == 1),
                    "{threads} threads, round {round}"
                );
                if round % 100 == 0 {
                    // Long enough for the workers to park.
                    thread::sleep(Duration::from_millis(5));
                }
            }
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_team_goes_on() {
        let mut team = team(3);
        for bad in 0..50 {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                team.run(50, 1, &|i| assert_ne!(i, bad, "planted"));
            }));
            assert!(caught.is_err(), "item {bad}");
            let done = AtomicUsize::new(0);
            team.run(20, 1, &|_| {
                done.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(done.load(Ordering::Relaxed), 20);
        }
    }

    #[test]
    fn panics_on_several_threads_at_once_leave_nothing_behind() {
        let mut team = team(3);
        for round in 0..100 {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                team.run(60, 1, &|_| {
                    // Long enough for the workers to come in.
                    thread::sleep(Duration::from_micros(200));
                    panic!("planted");
                });
            }));
            assert!(caught.is_err(), "round {round}");
            team.run(20, 1, &|_| ());
        }
    }
}
