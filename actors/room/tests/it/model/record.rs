//! What came of a model, for those who keep it.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Duration;

use stateright::{Checker, Expectation, Model};

/// Adds a line of JSON to the file that `MODEL_JSON` names, if it names one: before the model is judged, so that one that breaks a law
/// is recorded too.
pub(super) fn record<M>(name: &str, budget: &str, exhausted: bool, took: Duration, checker: &impl Checker<M>)
where
    M: Model<State: Clone + PartialEq, Action: Clone + PartialEq>,
{
    let Some(file) = std::env::var_os("MODEL_JSON") else {
        return;
    };
    let laws = checker.model().properties();
    let broken: Vec<&str> = laws
        .iter()
        .filter(|law| law.expectation == Expectation::Always && checker.discovery(law.name).is_some())
        .map(|law| law.name)
        .collect();
    // Our own names, in which JSON has nothing to escape that Rust has not.
    let line = format!(
        r#"{{"model":{name:?},"budget":{budget:?},"states":{},"steps":{},"depth":{},"exhausted":{exhausted},"seconds":{:.1},"broken":{broken:?}}}"#,
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        took.as_secs_f64(),
    );
    let opened = OpenOptions::new().create(true).append(true).open(&file);
    let written = opened.and_then(|mut opened| writeln!(opened, "{line}"));
    written.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}
