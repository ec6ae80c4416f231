//! INV-09: every queue is bounded and refuses by type.

use std::collections::BTreeSet;

use runtime::Refused;

use crate::client::End;
use crate::evidence::Evidence;
use crate::machine::{MAX_REQUESTS, MAX_WAITING};

pub(super) fn check(evidence: &Evidence) -> Vec<String> {
    let mut wrong = Vec::new();
    for sample in &evidence.samples {
        for gateway in &sample.gateways {
            let open = gateway.rooms.iter().filter(|view| view.outcome.is_none());
            let requests: BTreeSet<_> = open.clone().map(|view| &view.request_id).collect();
            if requests.len() > MAX_REQUESTS {
                wrong.push(format!("{} requests are open at {:?}", requests.len(), sample.at));
            }
            // Those that had credit before come back in any case, and there are no more of them than open rooms.
            let returning = open.filter(|view| view.generation > 0).count();
            if gateway.books.waiting > MAX_WAITING + returning {
                wrong.push(format!(
                    "{} rooms wait at {:?}, of which at most {returning} come back",
                    gateway.books.waiting, sample.at
                ));
            }
        }
    }
    for seen in &evidence.seen {
        if let End::Refused(why @ (Refused::NotStarted | Refused::Unavailable { .. })) = &seen.end
            && !evidence.disturbed(seen.asked, seen.ended)
        {
            wrong.push(format!(
                "{} was refused at {:?}: {why}",
                seen.job.request_id, seen.asked
            ));
        }
    }
    wrong
}
