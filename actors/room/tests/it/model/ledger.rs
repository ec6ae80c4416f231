//! The ledger alone, under every order of a few operations: two rooms of two generations each in a pool of three blocks,
//! with prompts that share their first block, and with workers that begin and stop when they please.

use std::collections::{BTreeMap, BTreeSet};

use room::{Ask, Attempt, BlockHash, BlockId, Hold, Ledger, Refusal};
use stateright::{Model, Property};

use super::part::Part;
use crate::host_kit::attempt;

const BLOCKS: u32 = 3;
const LEASED: u32 = 2;
const GENERATIONS: u32 = 2;
/// Not all of a lease's blocks may be shared: the last is always written.
const SHAREABLE: u32 = 1;
const HOLDS: [Hold; 2] = [Hold::Engine, Hold::Offer];

pub(super) struct Leases {
    pub(super) rooms: u64,
}

#[derive(Clone, Hash, PartialEq, Eq, Debug)]
pub(super) struct State {
    ledger: Part<Ledger>,
    newest: BTreeMap<u64, u32>,
    /// What each lease was given, and how many leading blocks it may only read.
    has: BTreeMap<Attempt, (Vec<BlockId>, u32)>,
    /// Who is at work, in truth.
    at_work: BTreeSet<(Attempt, Hold)>,
    /// What is in the first block of each lease, in truth: whether it is the KV of the common text.
    common: BTreeSet<BlockId>,
    broken: Option<&'static str>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Action {
    Grant(u64),
    /// A generation that was here already.
    GrantAgain(Attempt),
    Grow(Attempt),
    Start(Attempt, Hold),
    Stop(Attempt, Hold),
    /// The first block is written, and can be shared.
    Complete(Attempt),
    Close(Attempt),
}

fn ask() -> Ask {
    Ask {
        blocks: LEASED,
        shareable: SHAREABLE,
        hashes: vec![BlockHash(7)],
    }
}

impl Model for Leases {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            ledger: Part::new(Ledger::new(BLOCKS, 8)),
            newest: (1..=self.rooms).map(|seq| (seq, 0)).collect(),
            has: BTreeMap::new(),
            at_work: BTreeSet::new(),
            common: BTreeSet::new(),
            broken: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (seq, generation) in &state.newest {
            if *generation < GENERATIONS {
                actions.push(Action::Grant(*seq));
            }
            if *generation > 0 {
                actions.push(Action::GrantAgain(attempt(*seq, *generation)));
            }
        }
        for about in state.has.keys().copied() {
            actions.extend([Action::Grow(about), Action::Complete(about), Action::Close(about)]);
            for hold in HOLDS {
                let works = state.at_work.contains(&(about, hold));
                actions.push(if works {
                    Action::Stop(about, hold)
                } else {
                    Action::Start(about, hold)
                });
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        state.step(action);
        let State { ledger, has, .. } = &mut state;
        has.retain(|about, _| !ledger.blocks(*about).is_empty());
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "INV-01 nobody is given what another touches",
                |_, state: &State| state.broken.is_none() && state.apart(),
            ),
            Property::always("INV-02 the pool adds up", |_, state: &State| {
                state.ledger.occupancy().adds_up() && state.ledger.audit().is_ok()
            }),
            Property::always("INV-07 no generation comes twice", |_, state: &State| {
                state.broken != Some("again")
            }),
            Property::always("INV-08 blocks that nobody has are back", |_, state: &State| {
                !state.has.is_empty() || state.ledger.occupancy().is_quiescent()
            }),
            Property::sometimes("a block is shared", |_, state: &State| {
                state.has.keys().any(|about| state.ledger.cached(*about) > 0)
            }),
            Property::sometimes("blocks are quarantined", |_, state: &State| {
                state.ledger.occupancy().quarantined == LEASED
            }),
        ]
    }
}

impl State {
    fn step(&mut self, action: Action) {
        match action {
            Action::Grant(seq) => {
                let about = attempt(seq, self.newest[&seq] + 1);
                self.grant(seq, about);
            }
            Action::GrantAgain(about) => {
                if self.ledger.edit(|ledger| ledger.grant(about, &ask())) != Err(Refusal::Stale) {
                    self.broken = Some("again");
                }
            }
            Action::Grow(about) => {
                if let Ok(new) = self.ledger.edit(|ledger| ledger.grow(about, 1)) {
                    self.common.retain(|block| !new.contains(block));
                    if let Some((blocks, _)) = self.has.get_mut(&about) {
                        blocks.extend(new);
                    }
                }
            }
            Action::Start(about, hold) => {
                if self.ledger.edit(|ledger| ledger.hold(about, hold)) {
                    self.at_work.insert((about, hold));
                }
            }
            Action::Stop(about, hold) => {
                self.at_work.remove(&(about, hold));
                self.ledger.edit(|ledger| ledger.release(about, hold));
            }
            Action::Complete(about) => self.complete(about),
            Action::Close(about) => drop(self.ledger.edit(|ledger| ledger.close(about))),
        }
    }

    fn grant(&mut self, seq: u64, about: Attempt) {
        let Ok(grant) = self.ledger.edit(|ledger| ledger.grant(about, &ask())) else {
            return;
        };
        let (shared, fresh) = grant.blocks.split_at(grant.cached as usize);
        if shared.iter().any(|block| !self.common.contains(block)) {
            self.broken = Some("shares what is not there");
        }
        self.common.retain(|block| !fresh.contains(block));
        self.newest.insert(seq, about.generation.0);
        self.has.insert(about, (grant.blocks, grant.cached));
    }

    /// Whoever completes a block has written it: it needs the lease for that.
    fn complete(&mut self, about: Attempt) {
        let Some((blocks, reads)) = self.has.get_mut(&about) else {
            return;
        };
        let first = blocks[0];
        *reads = (*reads).max(1);
        self.common.insert(first);
        self.ledger.edit(|ledger| ledger.complete(about, 1));
    }

    /// What is given to one to be written, nobody else has, by right or at work.
    fn apart(&self) -> bool {
        let has = self.at_work.iter().all(|(about, hold)| {
            let given = self.has.get(about).map_or(&[][..], |(blocks, _)| blocks);
            self.ledger.holds(*about).has(*hold) && self.ledger.blocks(*about) == given && !given.is_empty()
        });
        let alone = self.has.iter().all(|(one, (blocks, reads))| {
            let mut others = self.has.iter().filter(|(other, _)| *other != one);
            let written = blocks.get(*reads as usize..).unwrap_or_default();
            others.all(|(_, (theirs, _))| !written.iter().any(|block| theirs.contains(block)))
        });
        has && alone
    }
}
