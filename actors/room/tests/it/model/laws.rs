//! What must hold in every state, and what must be reachable lest the rest be true of nothing.

use std::collections::BTreeSet;

use room::{BlockId, Outcome, Time, WaitsFor};
use stateright::{Model, Property};

use super::setup::Setup;
use super::state::{AtWork, Link, State, Worker, units};

/// A law that a step can break. The others can be seen in a state.
#[derive(Copy, Clone, Hash, PartialEq, Eq, Debug)]
pub(super) enum Law {
    /// INV-01
    ForeignByte,
    /// INV-03
    OneOutcome,
    /// INV-05
    OneAnswer,
    /// INV-07
    Stale,
    /// INV-04
    Undone,
    /// INV-08
    Lease,
    /// An answer got too far ahead of its reader.
    Ahead,
}

/// Later than anything lasts: a request, the fences after it and what its workers wait for then need nine units.
const END_OF_TIME: Time = Time {
    micros: 12 * units(1).micros,
};

pub(super) fn properties(setup: &Setup) -> Vec<Property<Setup>> {
    let mut all = vec![
        Property::always("INV-01 no foreign byte", |_, state: &State| {
            state.broken != Some(Law::ForeignByte) && state.workers.iter().all(only_holders_touch)
        }),
        Property::always("INV-02 the pool adds up", |_, state: &State| {
            state.workers.iter().all(adds_up)
        }),
        Property::always("INV-03 one outcome", |_, state: &State| {
            state.broken != Some(Law::OneOutcome)
        }),
        Property::always("INV-04 an answer by the deadline", |_, state: &State| {
            let late = |guest: &super::state::Guest| {
                guest.answer.is_none() && state.now > guest.room.spec().deadline
            };
            !state.guests.iter().any(late)
        }),
        Property::always("INV-05 one answer, and nothing after it", |_, state: &State| {
            state.broken != Some(Law::OneAnswer)
        }),
        Property::always("INV-07 what is stale changes nothing", |_, state: &State| {
            state.broken != Some(Law::Stale)
        }),
        Property::always("INV-04 what is due is done", |_, state: &State| {
            state.broken != Some(Law::Undone)
        }),
        Property::always("INV-08 no lease outlives its link", |_, state: &State| {
            state.broken != Some(Law::Lease)
        }),
        Property::always("no answer gets far ahead of its reader", |_, state: &State| {
            state.broken != Some(Law::Ahead)
        }),
        Property::always(
            "INV-08 where nothing more happens all has ended",
            |setup: &Setup, state| {
                let mut next = Vec::new();
                setup.actions(state, &mut next);
                !next.is_empty() || has_ended(state)
            },
        ),
        Property::always("time ends", |_, state: &State| state.now < END_OF_TIME),
    ];
    all.extend(reached(setup));
    all
}

/// What the bounds of a model let happen.
fn reached(setup: &Setup) -> Vec<Property<Setup>> {
    let mut all = vec![Property::sometimes("a room completes", |_, state: &State| {
        let whole = |guest: &super::state::Guest| matches!(guest.answer, Some(Outcome::Completed(_)));
        state.guests.iter().all(whole)
    })];
    if setup.budget.aborts > 0 {
        all.push(Property::sometimes(
            "blocks are quarantined",
            |_, state: &State| {
                let quarantines = |worker: &Worker| worker.host.occupancy().quarantined > 0;
                state.workers.iter().any(quarantines)
            },
        ));
    }
    if setup.budget.crashes + setup.budget.cuts > 0 {
        all.push(Property::sometimes(
            "a later attempt completes",
            |_, state: &State| {
                let later = |guest: &super::state::Guest| {
                    guest.room.generation().0 > 1 && matches!(guest.answer, Some(Outcome::Completed(_)))
                };
                state.guests.iter().any(later)
            },
        ));
    }
    if setup.budget.crashes > 0 {
        all.push(Property::sometimes(
            "a deadline ends a request",
            |_, state: &State| {
                let expired = |guest: &super::state::Guest| matches!(guest.answer, Some(Outcome::Expired(_)));
                state.guests.iter().any(expired)
            },
        ));
    }
    if setup.unread.is_some() {
        all.push(Property::sometimes(
            "a room waits for its reader",
            |_, state: &State| {
                let waits = |guest: &super::state::Guest| guest.room.waits_for() == WaitsFor::Reader;
                state.guests.iter().any(waits)
            },
        ));
    }
    if setup.loses_closes && setup.loses_digests {
        all.push(Property::sometimes("a worker is fenced", |_, state: &State| {
            state.workers.iter().any(|worker| worker.link != Link::Up)
        }));
    }
    all
}

impl State {
    /// The first law that breaks counts.
    pub(super) fn breaks(&mut self, law: Law) {
        self.broken = self.broken.or(Some(law));
    }
}

/// Everybody who touches a block has it by a hold of the ledger; and what one writes, no other attempt touches.
fn only_holders_touch(worker: &Worker) -> bool {
    let ledger = worker.host.ledger();
    let held = worker.at_work.iter().all(|((attempt, hold), work)| {
        let blocks = ledger.blocks(*attempt);
        ledger.holds(*attempt).has(*hold) && work.blocks.iter().all(|block| blocks.contains(block))
    });
    let apart = worker.at_work.iter().all(|((one, _), writer)| {
        let others = worker.at_work.iter().filter(|((other, _), _)| other != one);
        let mut touched = others.flat_map(|(_, work)| &work.blocks);
        touched.all(|block| !writer.written().contains(block))
    });
    held && apart
}

impl AtWork {
    fn written(&self) -> &[BlockId] {
        self.blocks.get(self.done as usize..).unwrap_or_default()
    }
}

fn adds_up(worker: &Worker) -> bool {
    let host = &worker.host;
    let had: BTreeSet<BlockId> = host
        .stays()
        .flat_map(|stay| host.ledger().blocks(stay.attempt).to_vec())
        .collect();
    let occupancy = host.occupancy();
    let out = occupancy.leased + occupancy.quarantined;
    occupancy.adds_up() && host.ledger().audit().is_ok() && had.len() == out as usize
}

fn has_ended(state: &State) -> bool {
    let gone = |worker: &Worker| worker.host.occupancy().is_quiescent() && worker.at_work.is_empty();
    state
        .guests
        .iter()
        .all(|guest| guest.ended && guest.answer.is_some())
        && state.workers.iter().all(gone)
}
