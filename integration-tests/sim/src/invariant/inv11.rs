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
    if evidence.quiet.is_none()
        && let Some(last) = evidence.samples.last()
    {
        for gateway in &last.gateways {
            wrong.push(format!(
                "not everything is back by {:?}: {:?}, rooms {:?}, workers {:?}",
                last.at, gateway.books, gateway.rooms, gateway.workers
            ));
        }
    }
    wrong
}
