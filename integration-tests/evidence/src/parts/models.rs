//! Models of the protocol, explored.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Part;
use crate::Stamp;
use crate::claim::Claim;
use crate::files::{Error, read};
use crate::text::{count, decimal, len, paragraph, table};

/// How many states, of all models together, and how many models are asked for.
const STATES: u64 = 10_000_000;
const MODELS: usize = 4;

/// Written below the target folder: a stamp, then a line a model.
const RECORDED: &str = "model.jsonl";

/// What the models of `room` write.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Models {
    recorded: Option<Stamp>,
    models: Vec<Explored>,
}

/// A line of what is written.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Stamp { recorded: Stamp },
    Model(Explored),
}

#[derive(Debug, Serialize, Deserialize)]
struct Explored {
    model: String,
    /// What may happen in it.
    budget: String,
    /// Different ones.
    states: u64,
    /// Ways that lead to them.
    steps: u64,
    depth: u64,
    /// Every state was seen.
    exhausted: bool,
    seconds: f64,
    /// The laws that do not hold.
    broken: Vec<String>,
}

impl Models {
    fn parse(text: &str) -> serde_json::Result<Self> {
        let mut all = Self {
            recorded: None,
            models: Vec::new(),
        };
        for line in text.lines() {
            match serde_json::from_str(line)? {
                Line::Stamp { recorded } => all.recorded = Some(recorded),
                Line::Model(model) => all.models.push(model),
            }
        }
        Ok(all)
    }
}

impl Part for Models {
    const TITLE: &'static str = "The protocol under every schedule";
    const RECIPE: &'static str = "just model";
    const KEPT: &'static str = "model.json";
    const ASKED: &'static str = "no law is broken in any state";

    fn recorded(target: &Path) -> Result<Option<Self>, Error> {
        let path = target.join(RECORDED);
        let Some(text) = read(&path)? else { return Ok(None) };
        let models = Self::parse(&text).map_err(|error| Error::new(&path, &error))?;
        Ok(Some(models))
    }

    fn stamps(&self) -> Vec<Option<&Stamp>> {
        vec![self.recorded.as_ref()]
    }

    fn claims(&self) -> Vec<Claim> {
        let broken = self
            .models
            .iter()
            .filter(|model| !model.broken.is_empty())
            .count();
        let states = self.models.iter().map(|model| model.states).sum();
        let whole = self.models.iter().filter(|model| model.exhausted).count();
        vec![
            Claim::new(
                format!("no law is broken in any state of at least {MODELS} models"),
                format!("{} of {} break one", len(broken), len(self.models.len())),
                broken == 0 && self.models.len() >= MODELS,
            ),
            Claim::new(
                format!("at least {} states", count(STATES)),
                format!(
                    "{}; those are all that there are of {} models",
                    count(states),
                    len(whole)
                ),
                states >= STATES,
            ),
        ]
    }

    fn section(&self, out: &mut String, _: &Path) -> Result<(), Error> {
        paragraph(
            out,
            "The code of rooms, hosts and ledgers itself, not a copy, between adversarial surroundings: whatever may happen next is tried, \
             as often as the budget allows. The laws are asked of every state, that everything ends among them.",
        );
        let row = |model: &Explored| {
            let whole = if model.exhausted { "all" } else { "not all" };
            let broken = if model.broken.is_empty() {
                "none".to_owned()
            } else {
                model.broken.join(", ")
            };
            vec![
                model.model.clone(),
                model.budget.clone(),
                count(model.states),
                whole.to_owned(),
                count(model.steps),
                count(model.depth),
                decimal(model.seconds),
                broken,
            ]
        };
        let head = [
            "model",
            "budget",
            "states",
            "of them",
            "steps",
            "depth",
            "seconds",
            "broken laws",
        ];
        table(out, &head, self.models.iter().map(row));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Models;
    use crate::parts::shown;

    fn line(states: u64, exhausted: bool, broken: &str) -> String {
        format!(
            r#"{{"model": "m, one room", "budget": "network 2", "states": {states}, "steps": 5000, "depth": 30, "exhausted": {exhausted}, "seconds": 1.25, "broken": [{broken}]}}"#
        )
    }

    fn check(models: &[String], lines: &[&str]) {
        let stamp = r#"{"recorded":{"commit":"abc","changed":false,"date":"2026-01-01 00:00","cores":2,"cpu":"a CPU"}}"#;
        let text = [&[stamp.to_owned()], models].concat().join("\n");
        let parsed = Models::parse(&text).unwrap();
        assert_eq!(parsed.recorded.as_ref().unwrap().commit, "abc");
        let text = shown::<Models>(&serde_json::to_string(&parsed).unwrap());
        for line in lines {
            assert!(text.contains(line), "no {line:?} in\n{text}");
        }
    }

    #[test]
    fn enough_states_of_enough_models() {
        let whole = || line(1_500, true, "");
        check(
            &[whole(), whole(), whole(), line(9_995_500, false, "")],
            &[
                "4 models: 0 of 4 break one: true",
                "10,000,000 states: 10,000,000; those are all that there are of 3 models: true",
                "| m, one room | network 2 | 1,500 | all | 5,000 | 30 | 1.2 | none |",
            ],
        );
        check(
            &[whole(), whole(), line(9_996_999, false, "")],
            &[
                "4 models: 0 of 3 break one: false",
                "10,000,000 states: 9,999,999; those are all that there are of 2 models: false",
            ],
        );
    }

    #[test]
    fn a_broken_law_is_told() {
        let broken = line(40, true, r#""INV-01""#);
        check(&[broken], &["1 of 1 break one: false", "| INV-01 |"]);
    }
}
