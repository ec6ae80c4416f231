//! INV-05: exactly one terminal event for each client's answer, and never success after failure.

use crate::evidence::Evidence;

pub(super) fn check(evidence: &Evidence) -> Vec<String> {
    let mut wrong = Vec::new();
    for seen in evidence.all() {
        for (room, answer) in seen.rooms.iter().zip(&seen.answers) {
            if answer.after_end > 0 {
                wrong.push(format!("{room}: {} events after its end", answer.after_end));
            }
        }
    }
    wrong
}
