//! INV-04: the outcome comes by the deadline, whatever is lost.

use std::time::Duration;

use room::Span;

use crate::client::{End, Manner};
use crate::evidence::Evidence;

/// How late an outcome may be: actors have to be scheduled, and a dead one has to be replaced by its supervisor.
const LATE: Duration = Duration::from_millis(1_000);

pub(super) fn check(evidence: &Evidence) -> Vec<String> {
    let mut wrong = Vec::new();
    for seen in &evidence.seen {
        // Who does not look sees late.
        if matches!(seen.manner, Manner::Slow(_)) || seen.end == End::Open {
            continue;
        }
        for (room, answer) in seen.rooms.iter().zip(&seen.answers) {
            let Some((at, outcome)) = answer.outcome else {
                continue;
            };
            let by = seen.asked + seen.job.timeout + LATE + evidence.leapt(seen.asked, at);
            if at > by {
                wrong.push(format!("{room}: {outcome:?} at {at:?}, due by {by:?}"));
            }
        }
    }
    // And every phase has a deadline that has not passed.
    let late = Span::from_millis(u64::try_from(LATE.as_millis()).unwrap_or(u64::MAX));
    for sample in &evidence.samples {
        for gateway in &sample.gateways {
            for view in &gateway.rooms {
                match view.deadline {
                    None => wrong.push(format!(
                        "{} waits in {:?} without a deadline",
                        view.room, view.phase
                    )),
                    Some(deadline) if deadline + late < gateway.now => {
                        let leapt = evidence.leapt(sample.at.saturating_sub(LATE), sample.at);
                        if leapt.is_zero() {
                            wrong.push(format!(
                                "{} is in {:?} at {:?} past its deadline {deadline:?} (now {:?})",
                                view.room, view.phase, sample.at, gateway.now
                            ));
                        }
                    }
                    Some(_) => {}
                }
            }
        }
    }
    wrong
}
