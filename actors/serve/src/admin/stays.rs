//! What a worker has, as rows: one attempt each.

use observe::{StayHistory, StayWhat, labels};
use room::StayCause;
use serde::{Deserialize, Serialize};

use super::moment::Moment;

/// One attempt at a worker.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StayRow {
    pub(crate) worker: String,
    pub(crate) room: String,
    pub(crate) generation: u32,
    /// Its phase; absent when nothing of it is left.
    pub(crate) phase: Option<String>,
    pub(crate) in_phase_ms: u64,
    pub(crate) age_ms: u64,
    /// Since nothing of it was left; absent while something is.
    pub(crate) ended_ms_ago: Option<u64>,
    /// When that was, in UTC.
    pub(crate) ended_at: Option<String>,
    /// Until its request ends.
    pub(crate) deadline_in_ms: Option<u64>,
    /// What led to its phase; of one that is over, why it was closed.
    pub(crate) why: Option<String>,
    /// Who may be touching its blocks: what it waits for while it is closing.
    pub(crate) holds: Option<String>,
    /// Positions to have KV for, and how many of them have it, as far as that was told.
    pub(crate) positions: u32,
    pub(crate) computed: u32,
    pub(crate) sampled_tokens: u32,
    pub(crate) trace_id: Option<String>,
}

/// Those of a worker.
pub(super) fn rows(stays: &[StayHistory], moment: Moment) -> Vec<StayRow> {
    stays.iter().map(|stay| StayRow::new(stay, moment)).collect()
}

impl StayRow {
    pub(super) fn new(stay: &StayHistory, moment: Moment) -> Self {
        let (facts, now) = (stay.facts(), moment.now);
        let mut row = Self {
            worker: facts.name.to_string(),
            room: facts.attempt.room.to_string(),
            generation: facts.attempt.generation.0,
            phase: None,
            in_phase_ms: 0,
            age_ms: (stay.ended().unwrap_or(now) - facts.opened).as_millis(),
            ended_ms_ago: stay.ended().map(|ended| moment.since_ms(ended)),
            ended_at: stay.ended().and_then(|ended| moment.utc(ended)),
            deadline_in_ms: stay.ended().is_none().then(|| (facts.deadline - now).as_millis()),
            why: None,
            holds: None,
            positions: facts.positions,
            computed: 0,
            sampled_tokens: stay.stream().tokens,
            trace_id: facts.trace.map(|trace| trace.id.to_string()),
        };
        if let Some((phase, since)) = stay.phase() {
            row.phase = Some(labels::stay_phase(phase).to_owned());
            row.in_phase_ms = moment.since_ms(since);
        }
        for event in stay.events().iter() {
            if let StayWhat::Step(step) = &event.what {
                row.holds = Some(labels::holds(step.holds).to_owned());
                // Of one that is over, why it was closed says more than that its proof came.
                if step.why != StayCause::Proven && step.from != step.to {
                    row.why = Some(labels::stay_cause(step.why).to_owned());
                }
            }
            if let StayWhat::Computed { positions } = &event.what {
                row.computed = *positions;
            }
        }
        row
    }

    /// That of a stay which is over: if there was no last step, it went with its worker's incarnation.
    pub(super) fn over(self) -> Self {
        if self.ended_ms_ago.is_some() {
            return self;
        }
        Self {
            deadline_in_ms: None,
            why: Some("incarnation_ended".to_owned()),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stay_that_went_with_its_incarnation_waits_for_no_deadline() {
        let row = StayRow {
            phase: Some("closing".to_owned()),
            deadline_in_ms: Some(524_069),
            why: Some("closed_by_owner".to_owned()),
            holds: Some("engine".to_owned()),
            ..StayRow::default()
        };
        let over = row.clone().over();
        assert_eq!(over.deadline_in_ms, None);
        assert_eq!(over.why.as_deref(), Some("incarnation_ended"));
        // What it waited for is worth knowing.
        assert_eq!(over.holds.as_deref(), Some("engine"));
        let ended = StayRow {
            ended_ms_ago: Some(5),
            ..row
        };
        assert_eq!(ended.clone().over().why, ended.why);
    }
}
