//! Whether an actor still owns its rooms.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Given to a request's actor, and revoked before an heir takes its rooms over: an actor that hung, was given up and comes back then
/// must not act on them any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mandate(Arc<AtomicBool>);

impl Mandate {
    /// From now on the rooms are another's.
    pub(crate) fn revoke(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
