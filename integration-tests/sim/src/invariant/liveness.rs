//! After the healing the cluster serves as if nothing had been, and as fast; and nothing has panicked that was not made to.

use std::time::Duration;

use room::Outcome;

use crate::client::End;
use crate::evidence::Evidence;

/// How much longer the same requests may take than at the beginning: where they go depends on what workers last said. The longest that it
/// ever was is on the page of evidence.
fn slack(before: Duration) -> Duration {
    before / 2 + Duration::from_secs(1)
}

pub(super) fn check(evidence: &Evidence) -> Vec<String> {
    let mut wrong = evidence.panics.others.clone();
    let (before, after) = (&evidence.before, &evidence.after);
    for seen in before.seen.iter().chain(&after.seen) {
        let completed = |outcome: Option<_>| matches!(outcome, Some((_, Outcome::Completed(_))));
        let whole = !seen.answers.is_empty() && seen.answers.iter().all(|answer| completed(answer.outcome));
        if seen.end != End::Whole || !whole {
            wrong.push(format!(
                "{} of a healthy cluster at {:?}: {:?} {:?}",
                seen.job.request_id,
                seen.asked,
                seen.end,
                seen.answers
                    .iter()
                    .map(|answer| answer.outcome)
                    .collect::<Vec<_>>()
            ));
        }
    }
    if evidence.quiet.is_some() && (before.seen.is_empty() || after.seen.is_empty()) {
        wrong.push("nobody asked the healthy cluster".to_owned());
    }
    if after.took > before.took + slack(before.took) {
        wrong.push(format!(
            "what took {:?} at first takes {:?} after the healing",
            before.took, after.took
        ));
    }
    wrong
}
