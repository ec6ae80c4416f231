//! That no schedule leads back to where it was: what *everything ends* rests on.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use stateright::Model;

/// The steps to a state that comes after itself, if there is one among all states, which are `most` at most.
pub(super) fn circle<M: Model<State: Hash>>(model: &M, most: usize) -> Option<usize> {
    // Of each state that was met, whether the way to here leads over it.
    let mut met: BTreeMap<u64, bool> = BTreeMap::new();
    let mut way: Vec<(u64, Vec<M::State>)> = Vec::new();
    for first in model.init_states() {
        way.push(enter(model, &mut met, &first));
    }
    while let Some((name, next)) = way.last_mut() {
        let Some(state) = next.pop() else {
            met.insert(*name, false);
            way.pop();
            continue;
        };
        match met.get(&name_of(&state)) {
            Some(true) => return Some(way.len()),
            Some(false) => {}
            None => way.push(enter(model, &mut met, &state)),
        }
        assert!(met.len() <= most, "there is no end of states");
    }
    None
}

fn enter<M: Model<State: Hash>>(
    model: &M,
    met: &mut BTreeMap<u64, bool>,
    state: &M::State,
) -> (u64, Vec<M::State>) {
    let name = name_of(state);
    met.insert(name, true);
    (name, model.next_states(state))
}

fn name_of(state: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn a_circle_is_found() {
    /// Counts up to its number, and from there back to two.
    struct Ring(u8);

    impl Model for Ring {
        type State = u8;
        type Action = u8;

        fn init_states(&self) -> Vec<u8> {
            vec![0]
        }

        fn actions(&self, state: &u8, actions: &mut Vec<u8>) {
            actions.extend((*state < 4).then_some(*state + 1));
            actions.extend((*state == self.0).then_some(2));
        }

        fn next_state(&self, _: &u8, action: u8) -> Option<u8> {
            Some(action)
        }
    }

    assert_eq!(circle(&Ring(3), 5), Some(4));
    assert_eq!(circle(&Ring(1), 5), None);
}
