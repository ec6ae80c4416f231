//! A room's account: what is read at a glance first, then everything.

use room::{LegView, PhaseKind, Time};
use serde::{Deserialize, Serialize};

use super::lines::lines;
use super::names::Names;
use super::stretches::{Stretch, stretches};
use super::times::lasting;
use super::{Standing, ends, odd, words};
use crate::history::RoomHistory;
use crate::labels;

/// Everything that is told of a room. Times are milliseconds, rounded down.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Account {
    /// Its name.
    pub room: String,
    /// Its request's name at the door.
    pub request_id: String,
    /// Its trace.
    pub trace_id: String,
    /// That trace's page in Jaeger, if it is known where Jaeger is.
    pub jaeger: Option<String>,
    /// Where it is and what that means, in one sentence.
    pub summary: String,
    /// The phase it is in.
    pub phase: String,
    /// For how long; of a room that has ended, none.
    pub in_phase_ms: Option<u64>,
    /// From its arrival at the door until now, or until nothing was left of it.
    pub age_ms: u64,
    /// What it waits for; none if it has ended.
    pub waits_for: Option<String>,
    /// What ends that wait, if nothing comes.
    pub ends: Option<Ends>,
    /// Who may hold blocks for it.
    pub held_by: Vec<Held>,
    /// Every worker that was told of it, in the order in which it met them.
    pub workers: Vec<Met>,
    /// What is out of the ordinary, the worst first.
    pub odd: Vec<String>,
    /// Its outcome, once it is fixed.
    pub outcome: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// The phase it was in then.
    pub ended_in: Option<String>,
    /// Its current or last attempt.
    pub attempt: u32,
    /// Attempts so far.
    pub attempts: u32,
    /// Which of its request's answers it is, from 1.
    pub answer: u32,
    /// How many the request has.
    pub answers: u32,
    /// The model.
    pub model: String,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Of those, found in a worker's cache.
    pub cached_tokens: u32,
    /// Tokens of the answer at most.
    pub max_tokens: u32,
    /// Tokens that went to the client.
    pub delivered_tokens: u32,
    /// How urgent it is.
    pub priority: u8,
    /// Where its time went.
    pub took: Took,
    /// When it arrived, by the clock on the wall, in milliseconds since 1970.
    pub arrived_unix_ms: Option<u64>,
    /// Its phases one after the other, since its arrival: what a timeline is drawn from.
    pub stretches: Vec<Stretch>,
    /// What has happened, in order.
    pub history: Vec<Line>,
    /// Events that are not kept any more, in all; lines of the history say where.
    pub left_out: u32,
}

/// What ends a wait.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Ends {
    /// In how long; 0 if it is due.
    pub in_ms: u64,
    /// Which deadline that is.
    pub deadline: String,
    /// What happens then.
    pub then: String,
}

/// A worker that may hold blocks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Held {
    /// Its name.
    pub worker: String,
    /// For which attempt.
    pub attempt: u32,
    /// Blocks, as it last said; none if it named none.
    pub blocks: Option<u32>,
    /// The attempt's phase there, as it last said.
    pub phase: Option<String>,
    /// How often it was told to give them back; none while it is to keep them.
    pub told_to_close: Option<u32>,
    /// How long ago it last reported; none if it is not linked, or never did.
    pub heard_ms_ago: Option<u64>,
}

/// A worker that was told of a room.
#[derive(Clone, Eq, PartialEq, Debug, Serialize, Deserialize)]
pub struct Met {
    /// Its name.
    pub worker: String,
    /// Whether a worker of that name is linked now.
    pub is_linked: bool,
    /// Where that one's own admin listener is asked, if it has one.
    pub admin: Option<String>,
}

/// Where a room's time went.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Took {
    /// At the door, before there was a room.
    pub prepare_ms: u64,
    /// Waiting for credit, all attempts together.
    pub queued_ms: u64,
    /// From arrival to the first token.
    pub first_token_ms: Option<u64>,
    /// From arrival to the outcome.
    pub outcome_ms: Option<u64>,
    /// The longest wait between two batches of tokens.
    pub longest_gap_ms: u64,
}

/// How a line of the history is to be taken.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// The room goes from one phase to another.
    Step,
    /// Something that belongs to its life.
    Note,
    /// Something that should not happen often.
    Warn,
    /// Something that is wrong.
    Fault,
}

/// Something that happened.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Line {
    /// Since the room's arrival, in microseconds: phases can be shorter than a millisecond.
    pub at_us: u64,
    /// In which attempt.
    pub attempt: u32,
    /// How it is to be taken.
    pub tone: Tone,
    /// What.
    pub what: String,
}

/// What is told of a room.
#[must_use]
pub fn account(history: &RoomHistory, standing: &Standing<'_>) -> Account {
    let (facts, state) = (&**history.facts(), history.state());
    let names = &Names::new(history, standing);
    let arrived = facts.arrived();
    let until = state.ended.unwrap_or(standing.now);
    let is_over = state.ended.is_some();
    let outcome = state.outcome.map(|(outcome, _)| outcome);
    let labels = outcome.map(labels::outcome);
    let waits_for = (!is_over).then(|| words::standing(standing, names));
    let millis = |span: Option<room::Span>| span.map(room::Span::as_millis);
    Account {
        room: facts.room.to_string(),
        request_id: facts.request_id.to_string(),
        trace_id: facts.trace.id.to_string(),
        jaeger: standing
            .jaeger
            .map(|base| format!("{}/trace/{}", base.trim_end_matches('/'), facts.trace.id)),
        summary: summary(history, standing, waits_for.as_deref()),
        phase: state.phase.name().to_owned(),
        in_phase_ms: (!is_over).then(|| (until - state.entered).as_millis()),
        age_ms: (until - arrived).as_millis(),
        ends: (!is_over)
            .then(|| ends::ends(facts, state, standing, names))
            .flatten(),
        waits_for,
        held_by: standing
            .legs
            .iter()
            .map(|leg| held(leg, standing, names))
            .collect(),
        workers: met(history, standing, names),
        odd: odd::odd(history, standing, names),
        outcome: labels.map(|(outcome, _)| outcome.to_owned()),
        reason: labels.map(|(_, reason)| reason.to_owned()),
        ended_in: state.ended_in.map(|phase| phase.name().to_owned()),
        attempt: state.generation.0,
        attempts: state.attempts,
        answer: facts.index + 1,
        answers: facts.of,
        model: facts.model.to_string(),
        prompt_tokens: facts.prompt_tokens,
        cached_tokens: state.cached_tokens,
        max_tokens: facts.max_tokens,
        delivered_tokens: state.stream.tokens,
        priority: facts.priority.0,
        took: Took {
            prepare_ms: facts.prepared.in_all.as_millis(),
            queued_ms: queued(history, standing.now),
            first_token_ms: millis(state.to_first_token(facts)),
            outcome_ms: millis(state.to_outcome(facts)),
            longest_gap_ms: state.stream.longest_gap.as_millis(),
        },
        arrived_unix_ms: standing
            .unix_ms
            .map(|unix| unix.saturating_sub((standing.now - arrived).as_millis())),
        stretches: stretches(history, until),
        history: lines(history, names),
        left_out: history.events().left_out(),
    }
}

/// A room that waits for credit now has waited for it until now.
fn queued(history: &RoomHistory, now: Time) -> u64 {
    let state = history.state();
    let present = match state.phase {
        PhaseKind::Queued => (now - state.entered).as_millis(),
        PhaseKind::Reserving
        | PhaseKind::Prefilling
        | PhaseKind::Pulling
        | PhaseKind::Decoding
        | PhaseKind::Draining
        | PhaseKind::Ended => 0,
    };
    state.queued.as_millis() + present
}

fn summary(history: &RoomHistory, standing: &Standing<'_>, waits_for: Option<&str>) -> String {
    let (facts, state) = (history.facts(), history.state());
    let ended = state.outcome.map(|(outcome, at)| {
        let took = (at - facts.arrived()).as_millis();
        words::outcome_after(outcome, took)
    });
    let since = lasting((standing.now - state.entered).as_millis());
    match (ended, waits_for) {
        (Some(ended), None) => format!("{ended}; everything it held is proven returned"),
        (Some(ended), Some(waits)) => {
            format!("{ended}; its client has its answer, and for {since} it waits for {waits}")
        }
        (None, Some(waits)) => format!("{} for {since}: it waits for {waits}", state.phase),
        (None, None) => "ended without an outcome, which cannot be".to_owned(),
    }
}

/// Each name once: a worker that was started anew is found where the one before it was.
fn met(history: &RoomHistory, standing: &Standing<'_>, names: &Names<'_>) -> Vec<Met> {
    let mut all: Vec<Met> = Vec::new();
    for node in history.state().workers.iter() {
        let worker = names.of(node);
        if all.iter().any(|known| known.worker == worker) {
            continue;
        }
        let peer = standing.peers.iter().find(|peer| peer.name == worker);
        all.push(Met {
            worker,
            is_linked: peer.is_some(),
            admin: peer.and_then(|peer| peer.admin.clone()),
        });
    }
    all
}

fn held(leg: &LegView, standing: &Standing<'_>, names: &Names<'_>) -> Held {
    let peer = standing.peer(leg.worker);
    let holding = peer.and_then(|peer| peer.holds.iter().find(|held| held.generation == leg.generation));
    Held {
        worker: names.of(leg.worker),
        attempt: leg.generation.0,
        blocks: holding.map(|held| held.blocks),
        phase: holding.map(|held| held.phase.clone()),
        told_to_close: leg.told_to_close,
        heard_ms_ago: peer
            .and_then(|peer| peer.heard)
            .map(|heard| (standing.now - heard).as_millis()),
    }
}
