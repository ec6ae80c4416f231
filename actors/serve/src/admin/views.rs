//! Rooms and workers as rows, the same for JSON and for the terminal.

use std::net::SocketAddr;

use mesh::LinkStats;
use observe::Gone;
use observe::explain::waits_for;
use room::{LegView, NodeId, Time};
use runtime::{Peer, RoomView, WorkerState};
use serde::{Deserialize, Serialize};

use super::moment::Moment;
use super::present::Present;
use super::pulse::Moves;

/// One room.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    /// Every worker that was told of it, in any attempt, in the order in which it met them.
    #[serde(default)]
    pub(crate) workers: Vec<String>,
    pub(crate) outcome: Option<String>,
    pub(crate) reason: Option<String>,
    /// The phase that it was in when its outcome was fixed.
    #[serde(default)]
    pub(crate) ended_in: Option<String>,
    /// Since nothing of it was left; absent while something is.
    #[serde(default)]
    pub(crate) ended_ms_ago: Option<u64>,
    /// When that was, in UTC.
    #[serde(default)]
    pub(crate) ended_at: Option<String>,
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
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct WorkerRow {
    pub(crate) name: String,
    pub(crate) node: String,
    /// Where its own admin listener is asked for `/stays`; absent if it has none, or has not said.
    #[serde(default)]
    pub(crate) admin: Option<String>,
    pub(crate) role: String,
    pub(crate) blocks_total: u32,
    pub(crate) blocks_free: u32,
    pub(crate) blocks_cached: u32,
    pub(crate) blocks_leased: u32,
    pub(crate) blocks_quarantined: u32,
    pub(crate) slots_total: u32,
    pub(crate) slots_used: u32,
    pub(crate) prefill_backlog_tokens: u64,
    /// Takes nothing new, from any gateway: it leaves, or an operator drained it.
    pub(crate) draining: bool,
    /// Since its link came up.
    #[serde(default)]
    pub(crate) linked_ms: u64,
    /// Since it last reported; absent until it did.
    #[serde(default)]
    pub(crate) heard_ms_ago: Option<u64>,
    pub(crate) kv_transport: String,
    pub(crate) kv_bytes_in: u64,
    pub(crate) kv_bytes_out: u64,
    /// What the gateway has promised there and not got back.
    pub(crate) promised_blocks: u32,
    pub(crate) rooms_held: usize,
}

/// A worker that was linked and is not.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct GoneRow {
    pub(crate) name: String,
    /// Since its link ended.
    pub(crate) ended_ms_ago: u64,
    /// When that was, in UTC.
    pub(crate) ended_at: Option<String>,
    /// How it ended.
    pub(crate) why: String,
}

impl GoneRow {
    pub(crate) fn new(gone: &Gone, moment: Moment) -> Self {
        Self {
            name: gone.name.to_string(),
            ended_ms_ago: moment.since_ms(gone.at),
            ended_at: moment.utc(gone.at),
            why: gone.why.to_string(),
        }
    }
}

impl RoomRow {
    pub(crate) fn new(view: &RoomView, present: &Present) -> Self {
        let (moment, now) = (present.moment, present.now());
        let name = |node| present.name(node);
        let until = view.ended.unwrap_or(now);
        let labels = view.outcome.map(observe::labels::outcome);
        Self {
            room: view.room.to_string(),
            request_id: view.request_id.clone(),
            generation: view.generation,
            phase: view.phase.to_string(),
            age_ms: (until - view.born).as_millis(),
            in_phase_ms: (until - view.since).as_millis(),
            waits_for: waits_for(view.waits_for, view.no_worker, now, &name),
            deadline_in_ms: view
                .deadline
                .filter(|_| view.ended.is_none())
                .map(|at| (at - now).as_millis()),
            delivered_tokens: view.delivered,
            held_by: view
                .legs
                .iter()
                .map(|leg| Holder::new(view, leg, present))
                .collect(),
            workers: once(view.workers.iter().map(name)),
            outcome: labels.as_ref().map(|(outcome, _)| (*outcome).to_owned()),
            reason: labels.map(|(_, reason)| reason.to_owned()),
            ended_in: view.ended_in.map(|phase| phase.name().to_owned()),
            ended_ms_ago: view.ended.map(|ended| moment.since_ms(ended)),
            ended_at: view.ended.and_then(|ended| moment.utc(ended)),
            trace_id: view.trace_id.map(|id| format!("{id:032x}")),
        }
    }
}

/// Names in order, each once: a worker that was started anew has another incarnation and the same name.
pub(super) fn once(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

impl Holder {
    fn new(view: &RoomView, leg: &LegView, present: &Present) -> Self {
        let key = wire::RoomKey {
            seq: view.room.seq,
            generation: leg.generation.0,
        };
        let held = present
            .linked(leg.worker)
            .and_then(|worker| worker.peer.held.iter().find(|held| held.key == key));
        Self {
            worker: present.name(leg.worker),
            generation: leg.generation.0,
            blocks: held.map(|held| held.blocks),
            phase: held.map(|held| format!("{:?}", held.phase).to_lowercase()),
            told_to_close: leg.told_to_close,
        }
    }
}

impl WorkerRow {
    pub(crate) fn new(worker: &WorkerState, present: &Present) -> Self {
        let (peer, stats, now) = (&worker.peer, &worker.peer.stats, present.now());
        Self {
            name: peer.name.clone(),
            node: peer.node.to_string(),
            admin: present.admin(worker),
            role: peer.role.to_string(),
            blocks_total: stats.blocks_total,
            blocks_free: stats.blocks_free,
            blocks_cached: stats.blocks_cached,
            blocks_leased: stats.blocks_leased,
            blocks_quarantined: stats.blocks_quarantined,
            slots_total: stats.slots_total,
            slots_used: stats.slots_used,
            prefill_backlog_tokens: stats.prefill_backlog_tokens,
            draining: peer.is_draining(),
            linked_ms: (now - peer.linked).as_millis(),
            heard_ms_ago: peer.reported.map(|at| (now - at).as_millis()),
            kv_transport: stats.kv_transport.clone(),
            kv_bytes_in: stats.kv_bytes_in,
            kv_bytes_out: stats.kv_bytes_out,
            promised_blocks: worker.desk.as_ref().map_or(0, |desk| desk.promised_blocks),
            rooms_held: peer.held.len(),
        }
    }
}

/// The link between the gateway and one worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LinkRow {
    pub(crate) worker: String,
    /// Where it leads.
    pub(crate) remote: String,
    /// Since it came up.
    pub(crate) up_ms: u64,
    /// Since the worker's last report over it; absent until there was one.
    pub(crate) heard_ms_ago: Option<u64>,
    /// QUIC's estimate of the time there and back.
    pub(crate) rtt_us: u64,
    pub(crate) frames_in: u64,
    pub(crate) frames_out: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// Frames that were not understood.
    pub(crate) dropped_in: u64,
    pub(crate) queued_frames: usize,
    pub(crate) queued_bytes: usize,
}

impl LinkRow {
    pub(crate) fn new(peer: &Peer, remote: SocketAddr, stats: &LinkStats, now: Time) -> Self {
        Self {
            worker: peer.name.clone(),
            remote: remote.to_string(),
            up_ms: (now - peer.linked).as_millis(),
            heard_ms_ago: peer.reported.map(|at| (now - at).as_millis()),
            rtt_us: u64::try_from(stats.rtt.as_micros()).unwrap_or(u64::MAX),
            frames_in: stats.frames_in,
            frames_out: stats.frames_out,
            bytes_in: stats.bytes_in,
            bytes_out: stats.bytes_out,
            dropped_in: stats.dropped_in,
            queued_frames: stats.queued_frames,
            queued_bytes: stats.queued_bytes,
        }
    }
}

/// KV that one worker pulled from another, for rooms of this gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct MoveRow {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) transport: String,
    pub(crate) pulls: u64,
    pub(crate) bytes: u64,
    pub(crate) descriptors: u64,
    pub(crate) last_ms_ago: u64,
}

impl MoveRow {
    pub(crate) fn new(moves: &Moves, name: &impl Fn(NodeId) -> String, now: Time) -> Self {
        Self {
            from: name(moves.from),
            to: name(moves.to),
            transport: moves.transport.to_string(),
            pulls: moves.pulls,
            bytes: moves.bytes,
            descriptors: moves.descriptors,
            last_ms_ago: (now - moves.last).as_millis(),
        }
    }
}
