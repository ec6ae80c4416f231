//! What views say at the moment of a scrape, for the metrics that are no sums of events.

use std::collections::{BTreeMap, BTreeSet};

use observe::{
    GatewayLevels, LinkLevel, LinkedWorker, NodeLevels, Pool, RoomLevel, Tables, TurnedAway, WorkerLevels,
};
use room::{NodeId, Span, Time};
use runtime::{GatewayHandle, LocalWorker, RoomView, WorkerState};
use wire::WorkerStats;

use super::seen::Seen;

/// All of it.
pub(super) fn levels(seen: &Seen) -> NodeLevels {
    let now = seen.clock.now();
    NodeLevels {
        gateway: seen.gateway.as_ref().map(of_gateway),
        workers: seen
            .workers
            .all()
            .iter()
            .map(|worker| of_worker(worker, now))
            .collect(),
        traces_dropped: seen.traces.as_ref().map(|counts| counts.dropped()),
        certificates: seen.expiries.all(),
    }
}

fn of_gateway(gateway: &GatewayHandle) -> GatewayLevels {
    let (views, now) = (gateway.rooms(), gateway.now());
    let kept = Kept::of(gateway, &views);
    let rooms = views.iter().map(|view| RoomLevel {
        phase: view.phase,
        in_phase: now - view.since,
        overdue: view
            .deadline
            .map_or_else(Span::default, |deadline| now - deadline),
    });
    let links = gateway.links();
    let link = |node: NodeId| {
        let found = links.iter().find(|(worker, _, _)| *worker == node);
        found.map(|(_, _, stats)| of_link(stats))
    };
    let workers = gateway.workers();
    let workers = workers
        .iter()
        .map(|worker| of_linked(worker, &kept, link(worker.peer.node)));
    let (tables, connections) = (gateway.bookkeeping(), gateway.connections());
    GatewayLevels {
        rooms: rooms.collect(),
        tables: Tables {
            addressed: tables.addressed,
            legs: tables.legs,
            timers: tables.timers,
            promises: tables.promises,
        },
        waiting: tables.waiting,
        unread_mail: gateway.unread_mail(),
        stale_inputs: gateway.counts().stale_inputs,
        workers: workers.collect(),
        turned_away: Some(TurnedAway {
            failed: connections.failed,
            refused: connections.refused,
            crowded: connections.turned_away,
        }),
    }
}

/// A worker's report is older than what has been heard from it since: what ended so shortly before is not held against it.
const LAG: Span = Span::from_millis(1_000);

/// Which rooms there are, and when those that are not ended.
struct Kept {
    open: BTreeSet<u64>,
    ended: BTreeMap<u64, Time>,
}

impl Kept {
    fn of(gateway: &GatewayHandle, open: &[RoomView]) -> Self {
        let ended = gateway.rooms_ended().into_iter();
        Self {
            open: open.iter().map(|view| view.room.seq).collect(),
            ended: ended
                .filter_map(|view| Some((view.room.seq, view.ended?)))
                .collect(),
        }
    }

    /// Whether a worker that reported then should not hold anything for this room any more.
    fn is_orphan(&self, seq: u64, reported: Option<Time>) -> bool {
        let reported = reported.unwrap_or_default();
        // What is not remembered ended long ago.
        !self.open.contains(&seq) && self.ended.get(&seq).is_none_or(|ended| *ended + LAG < reported)
    }
}

fn of_link(stats: &mesh::LinkStats) -> LinkLevel {
    LinkLevel {
        rtt: Span {
            micros: u64::try_from(stats.rtt.as_micros()).unwrap_or(u64::MAX),
        },
        frames_in: stats.frames_in,
        frames_out: stats.frames_out,
        bytes_in: stats.bytes_in,
        bytes_out: stats.bytes_out,
        dropped_in: stats.dropped_in,
        queued_frames: stats.queued_frames,
        queued_bytes: stats.queued_bytes,
    }
}

fn of_linked(worker: &WorkerState, kept: &Kept, link: Option<LinkLevel>) -> LinkedWorker {
    let (peer, stats) = (&worker.peer, &worker.peer.stats);
    let orphans = peer
        .held
        .iter()
        .filter(|held| kept.is_orphan(held.key.seq, peer.reported));
    LinkedWorker {
        name: peer.name.clone(),
        role: role(peer.role),
        pool: pool(stats),
        backlog_tokens: stats.prefill_backlog_tokens,
        draining: stats.draining,
        transport: stats.kv_transport.clone(),
        bytes_in: stats.kv_bytes_in,
        bytes_out: stats.kv_bytes_out,
        promised_blocks: worker.desk.as_ref().map_or(0, |desk| desk.promised_blocks),
        leases: peer.held.len(),
        orphans: orphans.count(),
        link,
    }
}

/// No gateway is linked as a worker.
fn role(role: wire::Role) -> room::Role {
    match role {
        wire::Role::Prefill => room::Role::Prefill,
        wire::Role::Decode => room::Role::Decode,
        wire::Role::Mixed | wire::Role::Gateway => room::Role::Mixed,
    }
}

fn pool(stats: &WorkerStats) -> Pool {
    Pool {
        free: stats.blocks_free,
        cached: stats.blocks_cached,
        leased: stats.blocks_leased,
        quarantined: stats.blocks_quarantined,
        slots: stats.slots_total,
        slots_used: stats.slots_used,
    }
}

fn of_worker(worker: &LocalWorker, now: Time) -> WorkerLevels {
    let stays = worker.stays();
    let stays = stays.iter().filter_map(|stay| stay.phase());
    WorkerLevels {
        name: worker.name().to_owned(),
        mailbox: worker.mailbox(),
        stays: stays.map(|(phase, since)| (phase, now - since)).collect(),
        pool: worker.figures().map(|figures| pool(&figures.stats)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(seq: u64, reported_ms: u64, orphan: bool) {
        let kept = Kept {
            open: BTreeSet::from([1]),
            ended: BTreeMap::from([(2, Time { micros: 5_000_000 })]),
        };
        let reported = Time {
            micros: reported_ms * 1_000,
        };
        assert_eq!(
            kept.is_orphan(seq, Some(reported)),
            orphan,
            "{seq} at {reported_ms}"
        );
    }

    #[test]
    fn a_lease_is_an_orphan_when_its_room_has_ended_for_longer_than_reports_take() {
        check(1, 9_000, false);
        check(2, 5_200, false);
        check(2, 6_001, true);
        check(3, 1, true);
    }
}
