//! Fault switches: what a link does to the frames of one kind, and whether it is cut. Settable while links run; without
//! effect on what is past already. For tests only: a build without the feature `faults` has none of this.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use wire::{EncodedFrame, Kind};

use crate::config::Config;

/// What happens to each frame of a kind.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Fault {
    /// It is lost.
    Drop,
    /// It is sent twice.
    Duplicate,
    /// It is sent, and once more later.
    Again(Duration),
    /// It is sent later; frames behind it overtake it.
    Delay(Duration),
}

impl Fault {
    /// What it does, in a word or two.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Drop => "lost",
            Self::Duplicate => "sent twice",
            Self::Again(_) => "sent again later",
            Self::Delay(_) => "late",
        }
    }
}

/// The switches of the links that were made with one [`Config`].
#[derive(Debug, Default)]
pub struct Faults {
    by_kind: Mutex<BTreeMap<Kind, Fault>>,
    cut_out: AtomicBool,
    cut_in: AtomicBool,
    /// Frames that met a fault, by their kind and the fault's name.
    struck: Mutex<BTreeMap<(Kind, &'static str), u64>>,
    /// Frames that were lost on their way in.
    cut_off: AtomicU64,
}

impl Faults {
    /// From now on, or with `None` no more.
    pub fn set(&self, kind: Kind, fault: Option<Fault>) {
        let mut by_kind = self.by_kind.lock().unwrap_or_else(PoisonError::into_inner);
        match fault {
            Some(fault) => by_kind.insert(kind, fault),
            None => by_kind.remove(&kind),
        };
    }

    /// Loses everything in one direction, as seen from this end. QUIC itself goes on: the peer sees silence, not a lost
    /// connection.
    pub fn cut(&self, out: bool, r#in: bool) {
        self.cut_out.store(out, Ordering::Relaxed);
        self.cut_in.store(r#in, Ordering::Relaxed);
    }

    /// How many frames were lost, repeated or delayed.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.struck().values().sum::<u64>() + self.cut_off.load(Ordering::Relaxed)
    }

    /// Those that were sent, by their kind and the [fault's name](Fault::name).
    #[must_use]
    pub fn struck(&self) -> BTreeMap<(Kind, &'static str), u64> {
        self.struck.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn strike(&self, kind: Kind, fault: Fault) {
        let mut struck = self.struck.lock().unwrap_or_else(PoisonError::into_inner);
        *struck.entry((kind, fault.name())).or_default() += 1;
    }

    fn fault(&self, kind: Kind) -> Option<Fault> {
        let by_kind = self.by_kind.lock().unwrap_or_else(PoisonError::into_inner);
        if self.cut_out.load(Ordering::Relaxed) {
            Some(Fault::Drop)
        } else {
            by_kind.get(&kind).copied()
        }
    }
}

/// The switches as one link sees them.
pub(crate) struct Switch(Arc<Faults>);

impl Switch {
    pub(crate) fn new(config: &Config) -> Self {
        Self(Arc::clone(&config.faults))
    }

    pub(crate) fn cuts_in(&self) -> bool {
        let cut = self.0.cut_in.load(Ordering::Relaxed);
        if cut {
            self.0.cut_off.fetch_add(1, Ordering::Relaxed);
        }
        cut
    }

    pub(crate) fn held(&self) -> Held {
        Held {
            later: BTreeMap::new(),
            next: 0,
        }
    }
}

/// Frames that are sent later, by time and then by order.
pub(crate) struct Held {
    later: BTreeMap<(Instant, u64), EncodedFrame>,
    next: u64,
}

impl Held {
    /// The next frame whose time has come. Cancel-safe.
    pub(crate) async fn due(&mut self) -> EncodedFrame {
        match self.later.keys().next() {
            Some((at, _)) => sleep_until(*at).await,
            None => std::future::pending().await,
        }
        match self.later.pop_first() {
            Some((_, frame)) => frame,
            None => std::future::pending().await,
        }
    }

    /// A frame whose time has come already.
    pub(crate) fn overdue(&mut self) -> Option<EncodedFrame> {
        let (at, _) = self.later.keys().next()?;
        if *at > Instant::now() {
            return None;
        }
        self.later.pop_first().map(|(_, frame)| frame)
    }

    /// What is left to be sent at once.
    pub(crate) fn judge(&mut self, switch: &Switch, frame: EncodedFrame) -> Option<EncodedFrame> {
        let Some(fault) = switch.0.fault(frame.kind()) else {
            return Some(frame);
        };
        switch.0.strike(frame.kind(), fault);
        match fault {
            Fault::Drop => None,
            Fault::Duplicate => {
                self.hold(Duration::ZERO, frame.clone());
                Some(frame)
            }
            Fault::Again(later) => {
                self.hold(later, frame.clone());
                Some(frame)
            }
            Fault::Delay(delay) => {
                self.hold(delay, frame);
                None
            }
        }
    }

    fn hold(&mut self, delay: Duration, frame: EncodedFrame) {
        self.later.insert((Instant::now() + delay, self.next), frame);
        self.next += 1;
    }
}
