//! After the healing the cluster serves as if nothing had been.

use room::Outcome;

use crate::client::End;
use crate::evidence::Evidence;

pub(super) fn check(evidence: &Evidence) -> Vec<String> {
    let mut wrong = Vec::new();
    if evidence.quiet.is_some() && evidence.probes.is_empty() {
        wrong.push("nobody asked the healed cluster".to_owned());
    }
    for seen in &evidence.probes {
        let completed = |outcome: Option<_>| matches!(outcome, Some((_, Outcome::Completed(_))));
        let whole = !seen.answers.is_empty() && seen.answers.iter().all(|answer| completed(answer.outcome));
        if seen.end != End::Whole || !whole {
            wrong.push(format!(
                "{} of a healed cluster at {:?}: {:?} {:?}",
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
    wrong
}
