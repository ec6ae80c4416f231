//! The same seed twice, in fresh processes.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Part;
use crate::Stamp;
use crate::claim::Claim;
use crate::files::Error;
use crate::text::{count, len, paragraph};

/// Seeds that are asked for.
const SEEDS: u64 = 20;

/// What `sim same` writes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Repeated {
    recorded: Option<Stamp>,
    first_seed: u64,
    virtual_minutes_each: u64,
    seeds: u64,
    differ: Vec<u64>,
}

impl Part for Repeated {
    const TITLE: &'static str = "The same seed again";
    const RECIPE: &'static str = "just sim-many N";
    const KEPT: &'static str = "sim-same.json";
    const ASKED: &'static str = "the same trace, for 20 seeds in two fresh processes each (INV-12)";

    fn stamps(&self) -> Vec<Option<&Stamp>> {
        vec![self.recorded.as_ref()]
    }

    fn claims(&self) -> Vec<Claim> {
        vec![Claim::new(
            format!("the same trace, for {SEEDS} seeds in two fresh processes each (INV-12)"),
            format!("{} of {} seeds differ", len(self.differ.len()), count(self.seeds)),
            self.differ.is_empty() && self.seeds >= SEEDS,
        )]
    }

    fn section(&self, out: &mut String, _: &Path) -> Result<(), Error> {
        let text = format!(
            "{} seeds from {} on, of {} virtual minutes each, were run in two fresh processes each. Compared is one number of the whole \
             trace: everything that the cluster says of itself, in its order, with its virtual time.",
            count(self.seeds),
            self.first_seed,
            self.virtual_minutes_each
        );
        paragraph(out, &text);
        if !self.differ.is_empty() {
            let seeds: Vec<String> = self.differ.iter().map(u64::to_string).collect();
            paragraph(out, &format!("Seeds that differ: {}.", seeds.join(", ")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Repeated;
    use crate::parts::shown;

    fn check(seeds: u64, differ: &str, claim: &str) {
        let kept = format!(
            r#"{{"first_seed": 1, "virtual_minutes_each": 10, "seeds": {seeds}, "differ": [{differ}]}}"#
        );
        let text = shown::<Repeated>(&kept);
        assert!(text.contains(claim), "no {claim:?} in\n{text}");
    }

    #[test]
    fn all_must_be_the_same_and_enough() {
        check(20, "", "(INV-12): 0 of 20 seeds differ: true");
        check(19, "", "(INV-12): 0 of 19 seeds differ: false");
        check(20, "7", "(INV-12): 1 of 20 seeds differ: false");
        check(20, "7, 9", "Seeds that differ: 7, 9.");
    }
}
