//! The loads that engines are compared under.

use std::fmt;

use super::Options;
use crate::bench::client::Load;
use crate::bench::server::Size;

/// A load.
#[derive(Copy, Clone, Debug)]
pub(super) struct Case {
    /// What is looked at.
    pub(super) part: Part,
    pub(super) streams: usize,
    /// Tokens of a prompt.
    pub(super) prompt: usize,
    /// Tokens of an answer.
    pub(super) answer: u32,
    requests: u64,
    size: Size,
}

/// What a case looks at.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(super) enum Part {
    /// Whole answers.
    Answers,
    /// Nothing but prompts: answers are of one token.
    Prompts,
    /// Whole answers to prompts of which the first thousand tokens are the same and known.
    Shared,
}

/// Of a prompt that begins like others.
pub(super) const SHARED: usize = 1_000;
/// And what it has for itself.
const OWN: usize = 100;

/// All that are asked for.
pub(super) fn cases(options: &Options) -> Vec<Case> {
    let wants = |part: &str| options.parts.iter().any(|wanted| wanted == part);
    let mut cases = Vec::new();
    let mut add = |part, streams, prompt, answer| {
        let size = options.size(streams, prompt);
        let requests = options.requests;
        cases.push(Case {
            part,
            streams,
            prompt,
            answer,
            requests,
            size,
        });
    };
    for (part, name) in [(Part::Answers, "answers"), (Part::Prompts, "prompts")] {
        for &prompt in options.prompts.iter().filter(|_| wants(name)) {
            for &streams in &options.streams {
                let answer = if part == Part::Prompts {
                    1
                } else {
                    options.answer_tokens
                };
                add(part, streams, prompt, answer);
            }
        }
    }
    for &streams in options.streams.iter().filter(|_| wants("shared")) {
        add(Part::Shared, streams, SHARED + OWN, options.answer_tokens);
    }
    cases
}

impl Case {
    /// How much it needs room for.
    pub(super) fn size(&self) -> Size {
        self.size
    }

    /// The load, on a server; every round has its own prompts, which are the same for all servers.
    pub(super) fn load(&self, server: Load, round: usize) -> Load {
        Load {
            streams: self.streams,
            prompt_tokens: self.prompt,
            shared_tokens: if self.part == Part::Shared { SHARED } else { 0 },
            answer_tokens: self.answer,
            requests: Some(self.requests),
            seed: 1 + round as u64,
            ..server
        }
    }

    /// What a server is to know before: what all prompts have in common.
    pub(super) fn first(&self, load: &Load) -> Option<Load> {
        (self.part == Part::Shared).then(|| Load {
            streams: 1,
            prompt_tokens: SHARED + 1,
            answer_tokens: 1,
            requests: Some(1),
            ..load.clone()
        })
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { streams, prompt, .. } = self;
        match self.part {
            Part::Answers => write!(f, "{streams} x {prompt}"),
            Part::Prompts => write!(f, "{streams} x {prompt}, prompt only"),
            Part::Shared => write!(f, "{streams} x {prompt}, {SHARED} known"),
        }
    }
}
