//! INV-03: exactly one outcome for each room, and the gateway's view of it is the client's.

use std::collections::BTreeMap;

use room::{Outcome, RoomId};

use crate::client::End;
use crate::evidence::Evidence;

pub(super) fn check(evidence: &Evidence) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut told: BTreeMap<RoomId, Outcome> = BTreeMap::new();
    for seen in evidence.all() {
        for (room, answer) in seen.rooms.iter().zip(&seen.answers) {
            if let Some((_, outcome)) = answer.outcome {
                let twice = told.insert(*room, outcome).is_some();
                wrong.extend(twice.then(|| format!("{room} belongs to two answers")));
            } else if seen.end == End::Whole {
                wrong.push(format!("{room} ended without an outcome"));
            }
        }
    }
    // A room that drains has its outcome already. It is never another one than the client's.
    for sample in &evidence.samples {
        for view in sample.gateways.iter().flat_map(|gateway| &gateway.rooms) {
            if let (Some(outcome), Some(told)) = (view.outcome, told.get(&view.room))
                && outcome != *told
            {
                wrong.push(format!(
                    "{} is {outcome:?} at its gateway, its client was told {told:?}",
                    view.room
                ));
            }
        }
    }
    wrong
}
