//! What is kept of one stay, at its worker.

use std::sync::Arc;

use room::{Span, StayCause, StayPhase, Time};

use super::kept::Kept;
use super::stream::Stream;
use crate::event::{StayEvent, StayWhat};
use crate::facts::StayFacts;

/// A stay's history. Made of its events alone.
#[derive(Clone, PartialEq, Debug)]
pub struct StayHistory {
    facts: Arc<StayFacts>,
    kept: Kept<StayEvent>,
    stream: Stream,
    phase: Option<StayPhase>,
    entered: Time,
    ended: Option<Time>,
}

impl StayHistory {
    /// That of a stay which begins now.
    #[must_use]
    pub fn new(facts: Arc<StayFacts>) -> Self {
        let opened = StayEvent {
            at: facts.opened,
            worker: facts.worker,
            attempt: facts.attempt,
            what: StayWhat::Opened(Arc::clone(&facts)),
        };
        let mut kept = Kept::default();
        kept.milestone(opened);
        Self {
            entered: facts.opened,
            facts,
            kept,
            stream: Stream::default(),
            phase: None,
            ended: None,
        }
    }

    /// Another event of this stay. Returns, for new tokens, how long after those before them they came.
    pub fn push(&mut self, event: &StayEvent) -> Option<Span> {
        match &event.what {
            StayWhat::Computed { .. } => {
                self.kept.chunk(event.clone());
                return None;
            }
            StayWhat::Sampled { count } => {
                let gap = self.stream.batch(event.at, *count);
                if gap.is_none_or(|gap| gap >= Stream::STALL) {
                    self.kept.chunk(event.clone());
                }
                return gap;
            }
            StayWhat::WantsBlocks { .. } => {
                self.kept.chunk(event.clone());
                return None;
            }
            StayWhat::Step(step) => {
                if step.from != step.to {
                    self.entered = event.at;
                }
                self.phase = step.to;
                if step.to.is_none() {
                    self.ended = Some(event.at);
                }
                if step.why == StayCause::ProofOverdue {
                    // Told again and again for as long as it lasts.
                    self.kept.repeat(event.clone());
                    return None;
                }
            }
            StayWhat::Opened(_)
            | StayWhat::Refused(_)
            | StayWhat::PromptStarted { .. }
            | StayWhat::EngineFailed { .. }
            | StayWhat::NotCommanded { .. }
            | StayWhat::Offered { .. }
            | StayWhat::NotOffered { .. }
            | StayWhat::Withdrawn
            | StayWhat::ReadStarted { .. }
            | StayWhat::ReadDone { .. }
            | StayWhat::ReadFailed { .. } => {}
        }
        self.kept.milestone(event.clone());
        None
    }

    /// What was fixed at its opening.
    #[must_use]
    pub fn facts(&self) -> &Arc<StayFacts> {
        &self.facts
    }

    /// Its events, in order, as far as they are kept. The first is its opening.
    #[must_use]
    pub fn events(&self) -> &Kept<StayEvent> {
        &self.kept
    }

    /// How the tokens sampled here came.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Where it is, and since when; none before its first step and after its last.
    #[must_use]
    pub fn phase(&self) -> Option<(StayPhase, Time)> {
        self.phase.map(|phase| (phase, self.entered))
    }

    /// When nothing of it was left.
    #[must_use]
    pub fn ended(&self) -> Option<Time> {
        self.ended
    }
}
