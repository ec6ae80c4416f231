//! The data path between all workers of one simulation, and its switches.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use kv::{EventSink, KvMemory};
use tokio::{
    runtime::Handle,
    sync::Notify,
    time::{Instant, timeout_at},
};

use super::{
    config::Config,
    faults::{Death, Faults},
    handle::SimTransfer,
    members::Place,
    world::World,
};

/// The data path. Cloning gives the same one. Its one task ends when the last handle and transfer are gone.
#[derive(Clone)]
pub(crate) struct Network(Arc<Inner>);

struct Inner {
    world: Mutex<World>,
    wake: Arc<Notify>,
}

impl Network {
    /// An empty network. To be called in the simulation's runtime, whose time is paused.
    pub(crate) fn new(config: Config, seed: u64) -> Self {
        let wake = Arc::new(Notify::new());
        let inner = Arc::new(Inner {
            world: Mutex::new(World::new(config, seed, Instant::now())),
            wake: Arc::clone(&wake),
        });
        tokio::spawn(drive(Arc::downgrade(&inner), wake));
        Self(inner)
    }

    /// The transfer of a new incarnation at `place`, over `memory`.
    pub(crate) fn join(&self, place: Place, memory: Arc<dyn KvMemory>, sink: EventSink) -> SimTransfer {
        let id = self.with(|world| world.join(place, memory, sink));
        SimTransfer {
            network: self.clone(),
            id,
        }
    }

    /// Whoever lives at `place` dies without a word to its owner.
    pub(crate) fn kill(&self, place: Place, death: Death) {
        self.with(|world| world.kill_at(place, death));
    }

    /// The transfer thread of whoever lives at `place` dies: all that was open ends, its owner is told [`kv::KvEvent::Down`],
    /// and nothing is accepted any more. False if nobody lives there.
    pub(crate) fn break_down(&self, place: Place) -> bool {
        self.with(|world| world.break_down_at(place))
    }

    /// Whoever lives at `place` neither answers nor takes anything in until it is thawed. What it had posted may land.
    pub(crate) fn freeze(&self, place: Place) {
        self.with(|world| world.freeze(place, true));
    }

    /// Ends [`Self::freeze`].
    pub(crate) fn thaw(&self, place: Place) {
        self.with(|world| world.freeze(place, false));
    }

    /// Nothing passes from `from` to `to` until that direction is healed; nothing is lost.
    #[cfg(test)]
    pub(crate) fn cut(&self, from: Place, to: Place) {
        self.with(|world| world.cut(from, to));
    }

    /// Cuts both directions.
    pub(crate) fn cut_both(&self, a: Place, b: Place) {
        self.with(|world| {
            world.cut(a, b);
            world.cut(b, a);
        });
    }

    /// Heals one direction.
    #[cfg(test)]
    pub(crate) fn heal(&self, from: Place, to: Place) {
        self.with(|world| world.heal(from, to));
    }

    /// Heals both directions.
    pub(crate) fn heal_both(&self, a: Place, b: Place) {
        self.with(|world| {
            world.heal(a, b);
            world.heal(b, a);
        });
    }

    /// What may go wrong with reads by whoever lives at `place`, now and later, and with reads from it by those who have no
    /// faults of their own. With [`Faults::NONE`] it has none of its own any more.
    pub(crate) fn set_faults(&self, place: Place, faults: Faults) {
        self.with(|world| world.set_faults(place, faults));
    }

    /// What may go wrong where neither place has faults of its own.
    pub(crate) fn set_default_faults(&self, faults: Faults) {
        self.with(|world| world.default_faults = faults);
    }

    /// `fault` meets the `nth` read from now at `place`, counted from 0.
    #[cfg(test)]
    pub(crate) fn on_read(&self, place: Place, nth: u64, fault: super::faults::Fault) {
        self.with(|world| world.script(place, nth, fault));
    }

    /// No fault any more: all paths heal, all members thaw, and no new read meets a fault.
    pub(crate) fn calm(&self) {
        self.with(World::calm);
    }

    /// Faults that have struck single reads, by kind. Cuts, freezes and deaths are the caller's to count.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.with(|world| world.counts.clone())
    }

    /// What broke INV-01 (at most 64 cases): blocks that somebody wrote to while the transfer had them pinned, and reads
    /// that were answered without a standing offer or its capability.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.with(|world| world.violations.clone())
    }

    /// Reads that either end is not done with.
    pub(crate) fn in_flight(&self) -> usize {
        self.with(|world| world.flows.len())
    }

    /// A hash of all that has happened so far, and when: the same for the same seed and the same calls.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.with(|world| world.fingerprint())
    }

    /// Acts on the world at the present time, then hands out the events that come of it.
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut World) -> R) -> R {
        self.0.with(act)
    }
}

impl Inner {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R>(&self, act: impl FnOnce(&mut World) -> R) -> R {
        let (result, out, sooner) = {
            let mut world = self.world();
            let before = world.queue.next();
            // Outside of the runtime there is no virtual time: a transfer that ends there ends when the last thing happened.
            if Handle::try_current().is_ok() {
                let now = Instant::now().max(world.now);
                world.run_until(now);
            }
            let result = act(&mut world);
            let next = world.queue.next();
            let sooner = next.is_some_and(|next| before.is_none_or(|before| next < before));
            (result, world.take_out(), sooner)
        };
        if sooner {
            self.wake.notify_one();
        }
        // No lock is held: an event may lead to the next call.
        for (sink, event) in out {
            // A sink that panics costs its owner the event, and no one else the network.
            let _ = catch_unwind(AssertUnwindSafe(|| sink(event)));
        }
        result
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

/// Lets things happen when they are due. Ends with the network.
async fn drive(network: Weak<Inner>, wake: Arc<Notify>) {
    loop {
        let next = match network.upgrade() {
            Some(inner) => inner.with(|world| world.queue.next()),
            None => return,
        };
        match next {
            // Either way there is something to look at.
            Some(at) => drop(timeout_at(at, wake.notified()).await),
            None => wake.notified().await,
        }
    }
}
