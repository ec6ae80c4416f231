//! INV-07: generations only grow, and so does what is delivered.

use std::collections::BTreeMap;

use crate::evidence::Evidence;

pub(super) fn check(evidence: &Evidence) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut last = BTreeMap::new();
    for sample in &evidence.samples {
        for view in sample.gateways.iter().flat_map(|gateway| &gateway.rooms) {
            let now = (view.generation, view.delivered);
            if let Some(before) = last.insert(view.room, now)
                && (now.0 < before.0 || now.1 < before.1)
            {
                wrong.push(format!(
                    "{} went from generation {} with {} tokens to {} with {}",
                    view.room, before.0, before.1, now.0, now.1
                ));
            }
        }
    }
    wrong
}
