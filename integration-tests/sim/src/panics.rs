//! Panics during simulations, on the thread of each: those that a simulation injects are counted, all others are kept.

use std::cell::RefCell;
use std::sync::Once;

/// What has panicked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Panics {
    /// How often a fault was that something panics.
    pub injected: u64,
    /// Panics that nobody injected, in words.
    pub others: Vec<String>,
}

/// How the words of an injected panic begin.
const INJECTED: &str = "a test's ";

thread_local! {
    static HERE: RefCell<Panics> = RefCell::default();
}

/// Begins anew for this thread.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let text = panic.payload().downcast_ref::<&str>().copied();
            if text.is_some_and(|text| text.starts_with(INJECTED)) {
                // No news, and a backtrace takes longer than a simulated second.
                HERE.with_borrow_mut(|here| here.injected += 1);
            } else {
                HERE.with_borrow_mut(|here| here.others.push(panic.to_string()));
                tell(panic);
            }
        }));
    });
    HERE.take();
}

/// Those of this thread since [`watch`].
pub(crate) fn seen() -> Panics {
    HERE.take()
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::{seen, watch};

    #[test]
    fn what_is_injected_is_told_from_what_is_not() {
        watch();
        assert!(catch_unwind(|| panic!("a test's poison")).is_err());
        assert!(catch_unwind(|| panic!("a bug")).is_err());
        let panics = seen();
        assert_eq!(panics.injected, 1);
        assert_eq!(panics.others.len(), 1);
        assert!(panics.others[0].contains("a bug"), "{panics:?}");
        assert!(catch_unwind(|| panic!("of a run before")).is_err());
        watch();
        assert_eq!(seen().others.len(), 0);
    }
}
