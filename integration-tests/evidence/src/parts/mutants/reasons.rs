//! Why a mutant that was missed is no gap: written by people, in `docs/evidence/survivors.toml`.

use std::path::Path;

use serde::Deserialize;

use crate::files::{Error, read};

const FILE: &str = "survivors.toml";

/// All that is said.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reasons {
    #[serde(default)]
    survivor: Vec<Survivor>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Survivor {
    mutant: String,
    reason: String,
}

impl Reasons {
    pub(super) fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(FILE);
        let Some(text) = read(&path)? else {
            return Ok(Self::default());
        };
        toml::from_str(&text).map_err(|error| Error::new(&path, &error))
    }

    /// What is said of this mutant.
    pub(super) fn of(&self, mutant: &str) -> Option<&str> {
        let said = self.survivor.iter().find(|survivor| survivor.mutant == mutant);
        said.map(|survivor| survivor.reason.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Reasons;

    #[test]
    fn a_reason_is_found_by_the_mutants_name() {
        let text = "[[survivor]]\nmutant = \"a.rs: replace + with -\"\nreason = \"the same\"\n";
        let reasons: Reasons = toml::from_str(text).unwrap();
        assert_eq!(reasons.of("a.rs: replace + with -"), Some("the same"));
        assert_eq!(reasons.of("a.rs: replace + with *"), None);
        assert!(toml::from_str::<Reasons>("[[survivors]]\n").is_err());
        assert!(
            toml::from_str::<Reasons>("# nothing yet\n")
                .unwrap()
                .survivor
                .is_empty()
        );
    }
}
