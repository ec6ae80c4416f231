//! Rooms and workers as rows, the same for JSON and for the terminal.

use room::{Time, WaitsFor};
use runtime::{RoomView, WorkerState};
use serde::{Deserialize, Serialize};

/// One room.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RoomRow {
    pub(crate) room: String,
    pub(crate) request_id: String,
    pub(crate) generation: u32,
    pub(crate) phase: String,
    pub(crate) age_ms: u64,
    pub(crate) in_phase_ms: u64,
    pub(crate) waits_for: String,
    /// Until the present wait is ended; absent for a room that has ended.
    pub(crate) deadline_in_ms: Option<u64>,
    pub(crate) delivered_tokens: u32,
    /// Who may hold blocks for it.
    pub(crate) held_by: Vec<Holder>,
    pub(crate) outcome: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) trace_id: Option<String>,
}

/// A worker that may hold blocks for a room.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Holder {
    pub(crate) worker: String,
    pub(crate) generation: u32,
    /// As the worker last said; absent until it did.
    pub(crate) blocks: Option<u32>,
    /// The attempt's phase there, as the worker last said.
    pub(crate) phase: Option<String>,
    /// How often it was told to give them back; absent while it is to keep them.
    pub(crate) told_to_close: Option<u32>,
}

/// One worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WorkerRow {
    pub(crate) name: String,
    pub(crate) node: String,
    pub(crate) role: String,
    pub(crate) blocks_total: u32,
    pub(crate) blocks_free: u32,
    pub(crate) blocks_cached: u32,
    pub(crate) blocks_leased: u32,
    pub(crate) blocks_quarantined: u32,
    pub(crate) slots_total: u32,
    pub(crate) slots_used: u32,
    pub(crate) prefill_backlog_tokens: u64,
    pub(crate) draining: bool,
    pub(crate) kv_transport: String,
    pub(crate) kv_bytes_in: u64,
    pub(crate) kv_bytes_out: u64,
    /// What the gateway has promised there and not got back.
    pub(crate) promised_blocks: u32,
    pub(crate) rooms_held: usize,
}

impl RoomRow {
    pub(crate) fn new(view: &RoomView, workers: &[WorkerState], now: Time) -> Self {
        let name = |node| {
            let known = workers.iter().find(|worker| worker.peer.node == node);
            known.map_or_else(|| format!("{node}"), |worker| worker.peer.name.clone())
        };
        let until = view.ended.unwrap_or(now);
        let held_by = view.legs.iter().map(|leg| {
            let held = workers
                .iter()
                .find(|worker| worker.peer.node == leg.worker)
                .and_then(|worker| {
                    let key = wire::RoomKey {
                        seq: view.room.seq,
                        generation: leg.generation.0,
                    };
                    worker.peer.held.iter().find(|held| held.key == key)
                });
            Holder {
                worker: name(leg.worker),
                generation: leg.generation.0,
                blocks: held.map(|held| held.blocks),
                phase: held.map(|held| format!("{:?}", held.phase).to_lowercase()),
                told_to_close: leg.told_to_close,
            }
        });
        let labels = view.outcome.map(observe::labels::outcome);
        Self {
            room: view.room.to_string(),
            request_id: view.request_id.clone(),
            generation: view.generation,
            phase: view.phase.to_string(),
            age_ms: (until - view.born).as_millis(),
            in_phase_ms: (until - view.since).as_millis(),
            waits_for: match view.no_worker {
                true => "a worker of a kind that there is none of".to_owned(),
                false => waits_for(view.waits_for, name, now),
            },
            deadline_in_ms: view
                .deadline
                .filter(|_| view.ended.is_none())
                .map(|at| (at - now).as_millis()),
            delivered_tokens: view.delivered,
            held_by: held_by.collect(),
            outcome: labels.as_ref().map(|(outcome, _)| (*outcome).to_owned()),
            reason: labels.map(|(_, reason)| reason.to_owned()),
            trace_id: view.trace_id.map(|id| format!("{id:032x}")),
        }
    }
}

/// What a room waits for, in words.
fn waits_for(waits_for: WaitsFor, name: impl Fn(room::NodeId) -> String, now: Time) -> String {
    match waits_for {
        WaitsFor::Credit => "a worker with room".to_owned(),
        WaitsFor::Pause { until } => format!("{} ms to ask for room again", (until - now).as_millis()),
        WaitsFor::Grant { worker } => format!("blocks and a slot from {}", name(worker)),
        WaitsFor::Prompt {
            worker,
            computed,
            positions,
        } => {
            format!(
                "{} to compute the prompt ({computed} of {positions})",
                name(worker)
            )
        }
        WaitsFor::Kv { from, to } => format!("{} to pull the KV from {}", name(to), name(from)),
        WaitsFor::Token { worker } => format!("the next token from {}", name(worker)),
        WaitsFor::Reader => "its client to read what it has".to_owned(),
        WaitsFor::Proof { worker, leases } => {
            format!(
                "proof from {} that its lease is returned ({leases} out)",
                name(worker)
            )
        }
        WaitsFor::Nothing => "nothing".to_owned(),
    }
}

impl WorkerRow {
    pub(crate) fn new(worker: &WorkerState) -> Self {
        let (peer, stats) = (&worker.peer, &worker.peer.stats);
        Self {
            name: peer.name.clone(),
            node: peer.node.to_string(),
            role: peer.role.to_string(),
            blocks_total: stats.blocks_total,
            blocks_free: stats.blocks_free,
            blocks_cached: stats.blocks_cached,
            blocks_leased: stats.blocks_leased,
            blocks_quarantined: stats.blocks_quarantined,
            slots_total: stats.slots_total,
            slots_used: stats.slots_used,
            prefill_backlog_tokens: stats.prefill_backlog_tokens,
            draining: stats.draining,
            kv_transport: stats.kv_transport.clone(),
            kv_bytes_in: stats.kv_bytes_in,
            kv_bytes_out: stats.kv_bytes_out,
            promised_blocks: worker.desk.as_ref().map_or(0, |desk| desk.promised_blocks),
            rooms_held: peer.held.len(),
        }
    }
}
