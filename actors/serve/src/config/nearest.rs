//! What somebody who misspelt a key may have meant.

use super::{Config, ENVIRONMENT, Origin};

/// Keys less alike than this are no help.
const ALIKE: f64 = 0.85;

/// What to add to the complaint about a key that does not exist.
pub(super) fn hint(key: &str, origin: &Origin) -> String {
    let name = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    // The name alone counts as well: the mistake may be the section.
    let likeness = |known: &String| {
        let whole = strsim::jaro_winkler(key, known);
        whole.max(strsim::jaro_winkler(&name(key), &name(known)))
    };
    let keys = Config::keys();
    let best = keys.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match best.filter(|known| likeness(known) >= ALIKE) {
        Some(known) => format!("; did you mean {}?", spelt(known, origin)),
        None => "; `innkeeper config` prints all there are".to_owned(),
    }
}

/// A key as it is written where the mistake was made.
fn spelt(key: &str, origin: &Origin) -> String {
    match origin {
        Origin::Environment(..) => format!("{ENVIRONMENT}{}", key.to_uppercase().replace('.', "__")),
        Origin::File(_) | Origin::Flag(_) => key.to_owned(),
    }
}
