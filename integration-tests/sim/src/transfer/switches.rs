//! Faults of paths and members, on command.

use std::time::Duration;

use super::{
    faults::{Death, Faults},
    members::{MemberId, Place},
    world::World,
};

/// How long a thawed member looks at what has come before it holds anything against its peers.
const GRACE: Duration = Duration::from_millis(20);

impl World {
    /// Nothing passes from one place to another any more; what is on its way waits.
    pub(super) fn cut(&mut self, from: Place, to: Place) {
        self.cuts.insert((from, to));
    }

    pub(super) fn heal(&mut self, from: Place, to: Place) {
        if self.cuts.remove(&(from, to)) {
            self.release();
        }
    }

    pub(super) fn freeze(&mut self, place: Place, frozen: bool) {
        let here = self.members.iter_mut().filter(|(id, _)| id.place == place);
        let mut changed = false;
        for (_, member) in here {
            changed |= std::mem::replace(&mut member.frozen, frozen) != frozen;
        }
        if changed && !frozen {
            self.release();
        }
    }

    pub(super) fn kill_at(&mut self, place: Place, death: Death) {
        for id in self.living_at(place) {
            self.kill(id, death);
        }
    }

    /// Whether anybody lives there.
    pub(super) fn break_down_at(&mut self, place: Place) -> bool {
        let living = self.living_at(place);
        living.iter().for_each(|id| self.break_down(*id));
        !living.is_empty()
    }

    fn living_at(&self, place: Place) -> Vec<MemberId> {
        let living = self.members.keys().copied();
        living.filter(|id| id.place == place).collect()
    }

    pub(super) fn set_faults(&mut self, place: Place, faults: Faults) {
        match faults == Faults::NONE {
            true => self.faults.remove(&place),
            false => self.faults.insert(place, faults),
        };
    }

    #[cfg(test)]
    pub(super) fn script(&mut self, place: Place, nth: u64, fault: super::faults::Fault) {
        let seen = self.reads_seen.get(&place).copied().unwrap_or_default();
        self.scripts.entry(place).or_default().insert(seen + nth, fault);
    }

    /// Everything is well from now on: what is dead stays dead.
    pub(super) fn calm(&mut self) {
        self.default_faults = Faults::NONE;
        self.faults.clear();
        self.scripts.clear();
        self.cuts.clear();
        for member in self.members.values_mut() {
            member.frozen = false;
        }
        self.release();
    }

    /// Lets what was held up go on; what is still held up comes back here.
    fn release(&mut self) {
        for event in self.queue.unpark() {
            let wait = match &event.what {
                what if what.is_deadline() => GRACE + self.config.latency * 2,
                what if what.crosses() => self.config.latency,
                _ => Duration::ZERO,
            };
            self.queue.push(self.now + wait, event.flow, event.what);
        }
    }
}
