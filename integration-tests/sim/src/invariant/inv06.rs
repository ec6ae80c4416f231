//! INV-06: delivered tokens are exactly those of an undisturbed run, migrations included.

use engine::Token;
use room::{Finish, Outcome};

use crate::client::{Manner, Seen};
use crate::evidence::Evidence;

pub(super) fn check(evidence: &Evidence) -> Vec<String> {
    let mut wrong = Vec::new();
    for seen in evidence.all() {
        for (index, (room, answer)) in seen.rooms.iter().zip(&seen.answers).enumerate() {
            let expected = expected(evidence, seen, index as u64);
            let got = &answer.tokens;
            if !expected.starts_with(got) {
                let at = got.iter().zip(&expected).take_while(|(a, b)| a == b).count();
                wrong.push(format!(
                    "{room} ({}) was given {} tokens that differ from the undisturbed {} at {at}",
                    seen.job.request_id,
                    got.len(),
                    expected.len()
                ));
                continue;
            }
            let whole = got.len() == expected.len();
            let stopped = index == 0 && matches!(seen.manner, Manner::Stops(after) if got.len() >= after);
            match answer.outcome {
                Some((_, Outcome::Completed(Finish::Stop))) if stopped => {}
                Some((_, outcome @ Outcome::Completed(_))) if !whole => wrong.push(format!(
                    "{room} is {outcome:?} with {} of {} tokens",
                    got.len(),
                    expected.len()
                )),
                _ => {}
            }
        }
    }
    wrong
}

fn expected(evidence: &Evidence, seen: &Seen, index: u64) -> Vec<Token> {
    let mut sampling = seen.job.sampling.clone();
    sampling.seed = sampling.seed.wrapping_add(index);
    mock::undisturbed(
        &evidence.plan.mock,
        &seen.job.prompt,
        &sampling,
        seen.job.max_new,
        seen.job.ignore_eos,
    )
}
