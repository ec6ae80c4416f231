//! The sources of the page.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Stamp;
use crate::claim::Claim;
use crate::files::{Error, keep, read};

mod fuzz;
mod matrix;
mod models;
mod mutants;
mod planted;
mod repeated;
mod simulation;

pub(crate) use fuzz::Fuzz;
pub(crate) use matrix::Matrix;
pub(crate) use models::Models;
pub(crate) use mutants::Mutants;
pub(crate) use planted::Planted;
pub(crate) use repeated::Repeated;
pub(crate) use simulation::Simulation;

/// A source. Its fields are what is kept of it, as they are in the file.
pub(crate) trait Part: Serialize + DeserializeOwned {
    /// Its heading.
    const TITLE: &'static str;
    /// The command that records it.
    const RECIPE: &'static str;
    /// Its file in `docs/evidence`, and below the target folder unless [`Part::recorded`] says otherwise.
    const KEPT: &'static str;
    /// What is asked of it, in short, for when nothing is recorded.
    const ASKED: &'static str;

    /// What was recorded below the target folder, if anything was.
    fn recorded(target: &Path) -> Result<Option<Self>, Error> {
        recorded(&target.join(Self::KEPT))
    }

    /// Where it comes from; nothing for what does not say so.
    fn stamps(&self) -> Vec<Option<&Stamp>>;

    /// What is asked of it, and what was found.
    fn claims(&self) -> Vec<Claim>;

    /// Its tables. In `folder` is what people say about it, if they have to.
    fn section(&self, out: &mut String, folder: &Path) -> Result<(), Error>;
}

/// What was recorded in a file, if it is there.
fn recorded<P: Part>(path: &Path) -> Result<Option<P>, Error> {
    let Some(text) = read(path)? else { return Ok(None) };
    let part = serde_json::from_str(&text).map_err(|error| Error::new(path, &error))?;
    Ok(Some(part))
}

/// Keeps what was recorded of every part.
pub(crate) fn keep_all(target: &Path, folder: &Path) -> Result<(), Error> {
    keep::<Simulation>(target, folder)?;
    keep::<Repeated>(target, folder)?;
    keep::<Planted>(target, folder)?;
    keep::<Models>(target, folder)?;
    keep::<Matrix>(target, folder)?;
    keep::<Fuzz>(target, folder)?;
    keep::<Mutants>(target, folder)
}

/// What a part shows of a recording, for its tests: its claims in lines, then its tables.
#[cfg(test)]
fn shown<P: Part>(kept: &str) -> String {
    let part: P = serde_json::from_str(kept).unwrap();
    let mut text = String::new();
    for claim in part.claims() {
        text += &format!("{}: {}: {}\n", claim.asked, claim.found, claim.holds);
    }
    part.section(&mut text, Path::new("/nonexistent")).unwrap();
    text
}
