//! The cluster at a glance: what the live page and `innkeeper top` show first.

use std::collections::BTreeMap;

use room::{PhaseKind, Time};
use runtime::{GatewayHandle, RoomView, WorkerState};
use serde::{Deserialize, Serialize};

use super::Office;
use super::present::Present;
use super::pulse::{LastMinute, Series};
use super::views::{LinkRow, MoveRow, RoomRow, WorkerRow};

/// Rooms that `top` shows.
const OLDEST: usize = 64;

/// Everything at a glance.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Overview {
    /// The gateway's name.
    pub(crate) gateway: String,
    /// Its incarnation.
    pub(crate) node: String,
    /// The model it serves.
    pub(crate) model: String,
    /// Its clock, in milliseconds: what ages in the feed are counted by.
    pub(crate) now_ms: u64,
    /// For how long it runs.
    pub(crate) uptime_s: u64,
    /// Why a request sent now could not be served; absent if it could.
    pub(crate) not_ready: Option<String>,
    pub(crate) rooms_open: usize,
    /// Of those, waiting for credit.
    pub(crate) rooms_waiting: usize,
    pub(crate) phases: Vec<PhaseRow>,
    pub(crate) last_minute: LastMinute,
    pub(crate) workers: Vec<WorkerRow>,
    pub(crate) links: Vec<LinkRow>,
    pub(crate) moves: Vec<MoveRow>,
    pub(crate) series: Series,
    /// The rooms that have been in their phase for longest; only where they are asked for.
    #[serde(default)]
    pub(crate) oldest: Vec<RoomRow>,
}

/// A phase.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PhaseRow {
    pub(crate) phase: String,
    pub(crate) rooms: usize,
    /// How long a room has been in it at the longest.
    pub(crate) oldest_ms: u64,
    /// That room's name.
    pub(crate) oldest: Option<String>,
}

/// Every phase, in order, with its oldest room.
pub(super) fn phases(views: &[RoomView], now: Time) -> Vec<PhaseRow> {
    let mut by_phase: BTreeMap<PhaseKind, (usize, Option<&RoomView>)> = BTreeMap::new();
    for view in views {
        let (count, oldest) = by_phase.entry(view.phase).or_default();
        *count += 1;
        if oldest.is_none_or(|oldest| view.since < oldest.since) {
            *oldest = Some(view);
        }
    }
    let row = |phase: &PhaseKind| {
        let (rooms, oldest) = by_phase.get(phase).copied().unwrap_or_default();
        PhaseRow {
            phase: phase.name().to_owned(),
            rooms,
            oldest_ms: oldest.map_or(0, |view| (now - view.since).as_millis()),
            oldest: oldest.map(|view| view.room.to_string()),
        }
    };
    let shown = PhaseKind::ALL.iter().filter(|phase| **phase != PhaseKind::Ended);
    shown.map(row).collect()
}

/// The gateway at a glance, with the seconds from `from_s` on. If somebody has looked at the rooms just now, by `phases`; else by a look of its
/// own, with the oldest rooms.
pub(super) fn overview(office: &Office, from_s: u64, phases: Option<Vec<PhaseRow>>) -> Overview {
    let (gateway, present) = (&office.gateway, Present::of(office));
    let now = present.now();
    let (phases, oldest) = match phases {
        Some(phases) => (phases, Vec::new()),
        None => looked(gateway, &present),
    };
    let rooms_open = phases.iter().map(|phase| phase.rooms).sum();
    let (name, row) = (
        |node| present.name(node),
        |worker| WorkerRow::new(worker, &present),
    );
    Overview {
        gateway: office.about.name.clone(),
        node: gateway.node().to_string(),
        model: office.about.model.clone(),
        now_ms: super::feed::millis(now),
        uptime_s: now.micros / 1_000_000,
        not_ready: gateway.ready().err(),
        rooms_open,
        rooms_waiting: gateway.waiting(),
        phases,
        last_minute: office.about.pulse.last_minute(now),
        links: links(&present),
        moves: office
            .about
            .pulse
            .moves()
            .iter()
            .map(|moves| MoveRow::new(moves, &name, now))
            .collect(),
        workers: present.workers.iter().map(row).collect(),
        series: office.about.pulse.series(now, from_s),
        oldest,
    }
}

/// Every phase, and the rooms that have been in theirs for longest.
fn looked(gateway: &GatewayHandle, present: &Present) -> (Vec<PhaseRow>, Vec<RoomRow>) {
    let mut views = gateway.rooms();
    let phases = phases(&views, present.now());
    views.sort_by_key(|view| view.since);
    let first = views.iter().take(OLDEST);
    (phases, first.map(|view| RoomRow::new(view, present)).collect())
}

/// Every link, by its worker's name.
pub(super) fn links(present: &Present) -> Vec<LinkRow> {
    let row = |worker: &WorkerState| {
        let (remote, stats) = present.links.get(&worker.peer.node)?;
        Some(LinkRow::new(&worker.peer, *remote, stats, present.now()))
    };
    present.workers.iter().filter_map(row).collect()
}
