//! INV-11: after all requests ended, every count is back at its start.

use crate::client::End;
use crate::evidence::Evidence;

pub(super) fn check(evidence: &Evidence) -> Vec<String> {
    let mut wrong = Vec::new();
    for seen in evidence.seen.iter().filter(|seen| seen.end == End::Open) {
        wrong.push(format!(
            "{} asked at {:?} is still open: {:?}",
            seen.job.request_id, seen.asked, seen.rooms
        ));
    }
    let when = match evidence.quiet {
        None => "after the healing",
        Some(_) => "at the end",
    };
    let last = evidence.samples.last();
    let idle = last.is_some_and(|last| last.is_idle(&evidence.plan));
    if evidence.quiet.is_none() || !idle {
        wrong.push(format!(
            "not everything is back {when}: of {} gateways {:?} have power",
            evidence.plan.gateways,
            last.map(|last| last.gateways.len())
        ));
        for gateway in last.iter().flat_map(|last| &last.gateways) {
            wrong.push(format!(
                "not everything is back {when}: {:?}, rooms {:?}, workers {:?}",
                gateway.books, gateway.rooms, gateway.workers
            ));
        }
    }
    wrong
}
