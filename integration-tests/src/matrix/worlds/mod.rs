//! Clusters with something in their paths: proxies, or networks of their own.

mod linked;
mod spaces;

pub(crate) use linked::{LINKED, Proxies};
pub(crate) use spaces::{SPACES, Spaces};

use super::ctx::Ctx;
use super::setup::Setup;
use crate::Cluster;

/// Two of each role.
const WORKERS: [(&str, &str); 4] = [
    ("prefill", "prefill-0"),
    ("prefill", "prefill-1"),
    ("decode", "decode-0"),
    ("decode", "decode-1"),
];

/// Two of each role with the deadlines that a site has, for rows that load the machine: what is slow there is no fault.
pub(super) static PATIENT: Setup = Setup {
    name: "2 prefill, 2 decode, tcp, deadlines as by default",
    start: || {
        Box::pin(async {
            let cluster = Cluster::apart(2, 2, &["ucx.tls=tcp"]).await;
            Ctx::new(cluster, WORKERS.len())
        })
    },
};

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
