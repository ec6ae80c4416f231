//! Clusters with something in their paths: proxies, or networks of their own.

mod linked;
mod spaces;

pub(crate) use linked::{LINKED, Proxies};
pub(crate) use spaces::{SPACES, Spaces};

use super::ctx::Ctx;

/// Two of each role.
const WORKERS: [(&str, &str); 4] = [
    ("prefill", "prefill-0"),
    ("prefill", "prefill-1"),
    ("decode", "decode-0"),
    ("decode", "decode-1"),
];

impl Ctx {
    /// What the setup has beside the processes.
    ///
    /// # Panics
    /// If it has no such thing.
    pub(crate) fn beside<T: 'static>(&self) -> &T {
        let beside = self.extra.as_ref().and_then(|extra| extra.downcast_ref::<T>());
        beside.expect("a cell names the setup that it needs")
    }
}
