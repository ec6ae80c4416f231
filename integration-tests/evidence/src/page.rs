//! The page: what is asked and found, where it comes from, and the tables of each part.

use std::path::Path;

use crate::files::{Error, kept};
use crate::parts::{self, Part};
use crate::text::{paragraph, table};

const HEAD: &str = "# Evidence

Every request ends once, with one outcome, by its deadline, and gives everything back; no request sees a byte of another's KV. This is
what was run to find out whether that is so. A *room* is one answer of one request; the invariants (`INV-01` …) are in
[ARCHITECTURE.md](../ARCHITECTURE.md).

The recordings are in [evidence/](evidence). `just evidence` takes in those that the commands below have written since, and makes this page;
no figure is typed by hand, and a test makes the page anew from the recordings and compares.";

/// What one part adds to the page.
struct Shown {
    claims: Vec<Vec<String>>,
    origins: Vec<Vec<String>>,
    section: String,
}

/// Makes the page from what is kept in this folder.
///
/// # Errors
/// If a file there cannot be read or understood.
pub fn page(folder: &Path) -> Result<String, Error> {
    let shown = [
        show::<parts::Simulation>(folder)?,
        show::<parts::Repeated>(folder)?,
        show::<parts::Planted>(folder)?,
        show::<parts::Models>(folder)?,
        show::<parts::Matrix>(folder)?,
        show::<parts::Fuzz>(folder)?,
        show::<parts::Mutants>(folder)?,
    ];
    let mut out = String::new();
    paragraph(&mut out, HEAD);
    paragraph(&mut out, "## What is asked, and what was found");
    let head = ["part", "asked", "found", "holds"];
    table(&mut out, &head, shown.iter().flat_map(|part| part.claims.clone()));
    paragraph(&mut out, "## Where it comes from");
    let head = ["part", "recorded by", "commit", "begun, UTC", "machine"];
    table(
        &mut out,
        &head,
        shown.iter().flat_map(|part| part.origins.clone()),
    );
    for part in shown {
        out.push_str(&part.section);
    }
    Ok(out.trim_end().to_owned() + "\n")
}

fn show<P: Part>(folder: &Path) -> Result<Shown, Error> {
    let title = || P::TITLE.to_owned();
    let recipe = format!("`{}`", P::RECIPE);
    let Some(part) = kept::<P>(folder)? else {
        let missing = format!("not recorded: {recipe} writes it");
        return Ok(Shown {
            claims: vec![vec![
                title(),
                P::ASKED.to_owned(),
                missing,
                "not known".to_owned(),
            ]],
            origins: Vec::new(),
            section: String::new(),
        });
    };
    let claim = |claim: crate::claim::Claim| {
        let verdict = claim.verdict().to_owned();
        vec![title(), claim.asked, claim.found, verdict]
    };
    let mut stamps: Vec<_> = part.stamps();
    stamps.dedup();
    let origin = |stamp: Option<&crate::Stamp>| {
        let Some(stamp) = stamp else {
            return vec![
                title(),
                recipe.clone(),
                "not recorded".to_owned(),
                String::new(),
                String::new(),
            ];
        };
        vec![
            title(),
            recipe.clone(),
            stamp.code(),
            stamp.date.clone(),
            stamp.machine(),
        ]
    };
    let mut section = String::new();
    paragraph(&mut section, &format!("## {}", P::TITLE));
    part.section(&mut section, folder)?;
    Ok(Shown {
        claims: part.claims().into_iter().map(claim).collect(),
        origins: stamps.into_iter().map(origin).collect(),
        section,
    })
}
