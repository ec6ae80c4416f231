//! Fuzzing.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Part;
use crate::Stamp;
use crate::claim::Claim;
use crate::files::Error;
use crate::text::{count, len, paragraph, table};

/// How long each target has to run, in seconds.
const SECONDS: u64 = 600;

/// What `fuzz/run` writes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Fuzz(Vec<Target>);

#[derive(Debug, Serialize, Deserialize)]
struct Target {
    recorded: Option<Stamp>,
    target: String,
    seconds: u64,
    executions: u64,
    edges: u64,
    features: u64,
    corpus_files: u64,
    found_files: u64,
    crashes: u64,
}

impl Part for Fuzz {
    const TITLE: &'static str = "Fuzzing";
    const RECIPE: &'static str = "just fuzz";
    const KEPT: &'static str = "fuzz.json";
    const ASKED: &'static str = "ten minutes of each target without a crash";

    fn stamps(&self) -> Vec<Option<&Stamp>> {
        let mut stamps: Vec<Option<&Stamp>> = Vec::new();
        for target in &self.0 {
            if !stamps.contains(&target.recorded.as_ref()) {
                stamps.push(target.recorded.as_ref());
            }
        }
        stamps
    }

    fn claims(&self) -> Vec<Claim> {
        let crashes: u64 = self.0.iter().map(|target| target.crashes).sum();
        let executions: u64 = self.0.iter().map(|target| target.executions).sum();
        let shortest = self
            .0
            .iter()
            .map(|target| target.seconds)
            .min()
            .unwrap_or_default();
        vec![
            Claim::new(
                "no input for which a demand is not met",
                format!("{} in {} executions", count(crashes), count(executions)),
                crashes == 0 && executions > 0,
            ),
            Claim::new(
                format!("each target for at least {} seconds", count(SECONDS)),
                format!(
                    "{} targets, the shortest for {}",
                    len(self.0.len()),
                    count(shortest)
                ),
                shortest >= SECONDS,
            ),
        ]
    }

    fn section(&self, out: &mut String, _: &Path) -> Result<(), Error> {
        paragraph(
            out,
            "Whatever bytes come in: a target makes something of them and demands more than that nothing panics. Coverage is libFuzzer's; the \
             files of the corpus are replayed by the tests.",
        );
        let row = |target: &Target| {
            vec![
                format!("`{}`", target.target),
                count(target.seconds),
                count(target.executions),
                count(target.edges),
                count(target.features),
                count(target.corpus_files),
                count(target.crashes),
            ]
        };
        let head = [
            "target",
            "seconds",
            "executions",
            "edges",
            "features",
            "files of the corpus",
            "crashes",
        ];
        table(out, &head, self.0.iter().map(row));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Fuzz;
    use crate::parts::{Part, shown};

    fn target(seconds: u64, crashes: u64, commit: &str) -> String {
        format!(
            r#"{{"target": "hello", "seconds": {seconds}, "executions": 781534, "edges": 917, "features": 8818, "corpus_files": 3,
            "found_files": 2045, "crashes": {crashes},
            "recorded": {{"commit": "{commit}", "changed": false, "date": "d", "cores": 2, "cpu": "c"}}}}"#
        )
    }

    fn check(targets: &[String], lines: &[&str]) {
        let text = shown::<Fuzz>(&format!("[{}]", targets.join(",")));
        for line in lines {
            assert!(text.contains(line), "no {line:?} in\n{text}");
        }
    }

    #[test]
    fn long_enough_and_without_a_crash() {
        check(
            &[target(603, 0, "a"), target(600, 0, "a")],
            &[
                "0 in 1,563,068 executions: true",
                "2 targets, the shortest for 600: true",
                "| `hello` | 603 | 781,534 | 917 | 8,818 | 3 | 0 |",
            ],
        );
        check(
            &[target(599, 0, "a"), target(600, 1, "a")],
            &["1 in 1,563,068 executions: false", "the shortest for 599: false"],
        );
    }

    #[test]
    fn each_commit_is_told_once() {
        let kept = [target(1, 0, "a"), target(1, 0, "b"), target(1, 0, "a")].join(",");
        let fuzz: Fuzz = serde_json::from_str(&format!("[{kept}]")).unwrap();
        let commits: Vec<_> = fuzz
            .stamps()
            .into_iter()
            .flatten()
            .map(|stamp| stamp.commit.as_str())
            .collect();
        assert_eq!(commits, ["a", "b"]);
    }
}
