//! What became of dialling, for whoever shows a worker's state.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use crate::link::LinkId;

/// How it stands with one gateway address.
#[derive(Clone, Eq, PartialEq, Debug)]
pub enum DialState {
    /// Being dialled.
    Dialling,
    /// Linked.
    Up(LinkId),
    /// Dialled again soon; the last attempt, or the last link, ended so.
    Waiting(String),
}

/// One gateway address and how it stands.
#[derive(Clone, Eq, PartialEq, Debug)]
pub struct DialStatus {
    /// The address.
    pub address: SocketAddr,
    /// How it stands.
    pub state: DialState,
}

/// All of them, and the look-ups that failed.
#[derive(Debug, Default)]
pub(super) struct Board {
    states: Mutex<BTreeMap<SocketAddr, DialState>>,
}

impl Board {
    fn with<R>(&self, f: impl FnOnce(&mut BTreeMap<SocketAddr, DialState>) -> R) -> R {
        f(&mut self.states.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set(&self, address: SocketAddr, state: DialState) {
        self.with(|states| states.insert(address, state));
    }

    pub(super) fn remove(&self, address: SocketAddr) {
        self.with(|states| states.remove(&address));
    }

    pub(super) fn snapshot(&self) -> Vec<DialStatus> {
        self.with(|states| {
            let all = states.iter();
            all.map(|(address, state)| DialStatus {
                address: *address,
                state: state.clone(),
            })
            .collect()
        })
    }
}
