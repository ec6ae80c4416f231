//! Which bug is planted, for this thread.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::OnceLock;

use crate::Bug;

/// Names the bug that threads have which did not call [`plant`].
pub const VARIABLE: &str = "INNKEEPER_PLANTED";

thread_local! {
    static HERE: Cell<Option<Bug>> = Cell::new(of_process());
}

/// Whether this bug is planted here and now.
#[must_use]
pub fn is(bug: Bug) -> bool {
    HERE.get() == Some(bug)
}

/// Plants a bug in this thread, or with `None` none, until the guard is dropped.
#[must_use]
pub fn plant(bug: Option<Bug>) -> Planted {
    Planted {
        before: HERE.replace(bug),
        here: PhantomData,
    }
}

/// While it lives, the bug is planted. Guards end in the opposite order of their making, on the thread of their making.
#[derive(Debug)]
pub struct Planted {
    before: Option<Bug>,
    /// Not to be sent to another thread.
    here: PhantomData<*const ()>,
}

impl Drop for Planted {
    fn drop(&mut self) {
        HERE.set(self.before);
    }
}

/// # Panics
/// When the variable names no bug: a run that is meant to find one must not pass because nothing was planted.
fn of_process() -> Option<Bug> {
    static NAMED: OnceLock<Option<Bug>> = OnceLock::new();
    *NAMED.get_or_init(|| {
        let name = std::env::var_os(VARIABLE).filter(|name| !name.is_empty())?;
        let parsed = name.to_string_lossy().parse();
        Some(parsed.unwrap_or_else(|unknown| panic!("{VARIABLE}: {unknown}")))
    })
}

#[cfg(test)]
mod tests {
    use super::{is, plant};
    use crate::Bug;

    #[track_caller]
    fn check(planted: Option<Bug>) {
        let found: Vec<Bug> = Bug::ALL.into_iter().filter(|bug| is(*bug)).collect();
        assert_eq!(found, Vec::from_iter(planted));
    }

    #[test]
    fn a_bug_is_planted_while_its_guard_lives() {
        let _none = plant(None);
        check(None);
        let outer = plant(Some(Bug::FreeOnAbort));
        check(Some(Bug::FreeOnAbort));
        {
            let _inner = plant(Some(Bug::TimeoutFrees));
            check(Some(Bug::TimeoutFrees));
        }
        check(Some(Bug::FreeOnAbort));
        drop(outer);
        check(None);
    }

    #[test]
    fn a_bug_is_planted_in_one_thread() {
        let _here = plant(Some(Bug::DigestIgnored));
        let there = std::thread::spawn(|| {
            let _there = plant(Some(Bug::EpochIgnored));
            check(Some(Bug::EpochIgnored));
        });
        assert!(there.join().is_ok());
        check(Some(Bug::DigestIgnored));
    }
}
