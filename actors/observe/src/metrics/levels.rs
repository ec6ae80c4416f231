//! What there is now, as views say at the moment of a scrape. Gauges are made anew each time: whoever is gone has none.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use room::{PhaseKind, Role, Span, StayPhase};

use super::conservation::{self, Open};
use super::families::{
    Amounts, Between, Carried, Counts, Levels, Phase, Reason, Role as RoleLabel, Shelf, What, Worker,
    WorkerPhase, WorkerState, WorkerWay, seconds,
};
use super::names::Names;
use crate::labels;

/// What a node's views say now.
#[derive(Clone, Debug, Default)]
pub struct NodeLevels {
    /// Its gateway, if it has one.
    pub gateway: Option<GatewayLevels>,
    /// Its own workers.
    pub workers: Vec<WorkerLevels>,
    /// Traces that could not be taken or given away, since the start; none if nobody makes any.
    pub traces_dropped: Option<u64>,
    /// What its certificates are for, and until when they are good, in seconds since 1970.
    pub certificates: Vec<(&'static str, i64)>,
}

/// What a gateway's views say.
#[derive(Clone, Debug, Default)]
pub struct GatewayLevels {
    /// Its open rooms.
    pub rooms: Vec<RoomLevel>,
    /// Sizes of its tables.
    pub tables: Tables,
    /// Rooms that wait for credit.
    pub waiting: usize,
    /// Messages that no owner of a room has read yet.
    pub unread_mail: usize,
    /// What rooms were told that changed nothing, since the start.
    pub stale_inputs: u64,
    /// The linked workers.
    pub workers: Vec<LinkedWorker>,
    /// Connections of workers that came to no link, since the start; none if that is not known.
    pub turned_away: Option<TurnedAway>,
}

/// Sizes of a gateway's tables of what has not ended.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct Tables {
    /// Rooms that mail is delivered to.
    pub addressed: usize,
    /// Attempts that a worker may hold something for.
    pub legs: usize,
    /// Requests with a deadline armed.
    pub timers: usize,
    /// Attempts with credit at a worker.
    pub promises: usize,
}

/// One open room.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct RoomLevel {
    /// Where it is.
    pub phase: PhaseKind,
    /// For how long.
    pub in_phase: Span,
    /// For how long the deadline of its wait has passed; zero while it has not.
    pub overdue: Span,
}

/// A worker as a gateway sees it.
#[derive(Clone, Debug)]
pub struct LinkedWorker {
    /// Its name.
    pub name: String,
    /// What it does.
    pub role: Role,
    /// What it last reported.
    pub pool: Pool,
    /// Prompt tokens accepted and not yet computed.
    pub backlog_tokens: u64,
    /// Whether it takes no new rooms.
    pub draining: bool,
    /// What carries KV to it.
    pub transport: String,
    /// KV bytes that it fetched.
    pub bytes_in: u64,
    /// KV bytes that it gave.
    pub bytes_out: u64,
    /// Blocks that the gateway has promised there and not got back.
    pub promised_blocks: u32,
    /// Attempts of the gateway's rooms that it holds.
    pub leases: usize,
    /// Of those, of rooms that are not open.
    pub orphans: usize,
    /// Its link.
    pub link: Option<LinkLevel>,
}

/// A worker's pool and slots.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct Pool {
    /// Blocks with nothing in them.
    pub free: u32,
    /// Blocks that nobody has, kept for their contents.
    pub cached: u32,
    /// Blocks that attempts have.
    pub leased: u32,
    /// Blocks of attempts that are gone, which somebody may still touch.
    pub quarantined: u32,
    /// Sequences that can run at a time.
    pub slots: u32,
    /// Of those, taken.
    pub slots_used: u32,
}

/// A link.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct LinkLevel {
    /// To the peer and back.
    pub rtt: Span,
    /// Frames received.
    pub frames_in: u64,
    /// Frames sent.
    pub frames_out: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Frames received and dropped.
    pub dropped_in: u64,
    /// Frames that wait to be sent.
    pub queued_frames: usize,
    /// Bytes of them.
    pub queued_bytes: usize,
}

/// Connections that came to no link.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct TurnedAway {
    /// Not authenticated, or no hello in time.
    pub failed: u64,
    /// Refused with a reason.
    pub refused: u64,
    /// Too many others had not said hello yet.
    pub crowded: u64,
}

/// A worker as it sees itself.
#[derive(Clone, Debug, Default)]
pub struct WorkerLevels {
    /// Its name.
    pub name: String,
    /// Messages that wait for its actor.
    pub mailbox: usize,
    /// Its stays: where each is, and for how long.
    pub stays: Vec<(StayPhase, Span)>,
    /// Its pool, as it last said; none while no incarnation runs.
    pub pool: Option<Pool>,
}

/// Registers all of it in a registry of its own.
pub(super) fn register(levels: &NodeLevels, open: Option<Open>, names: &Names) -> Registry {
    let mut registry = Registry::default();
    let mut shelf = Shelf(&mut registry);
    if let Some(gateway) = &levels.gateway {
        rooms(&mut shelf, gateway);
        if let Some(open) = open {
            tables(&mut shelf, gateway, open);
        }
        linked(&mut shelf, &gateway.workers, names);
        links(&mut shelf, &gateway.workers, names);
        turned_away(&mut shelf, gateway.turned_away);
    }
    if !levels.workers.is_empty() {
        own(&mut shelf, &levels.workers, names);
    }
    if let Some(dropped) = levels.traces_dropped {
        total(
            &mut shelf,
            "traces_dropped",
            "Spans that could not be taken or given away",
            dropped,
        );
    }
    certificates(&mut shelf, &levels.certificates);
    registry
}

fn certificates(shelf: &mut Shelf<'_>, all: &[(&'static str, i64)]) {
    if all.is_empty() {
        return;
    }
    let expires: Levels<What> = shelf.put_in(
        Unit::Seconds,
        "certificate_expires_timestamp",
        "Until when the certificate is good that is shown, since 1970; of one that is kept in files",
        Levels::default(),
    );
    for (what, at) in all {
        expires.get_or_create(&What { what }).set(*at);
    }
}

fn total(shelf: &mut Shelf<'_>, name: &str, help: &str, value: u64) {
    shelf.count::<Counter>(name, help).inc_by(value);
}

/// Of what is counted in memory: never beyond what a gauge can say.
fn level(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn rooms(shelf: &mut Shelf<'_>, gateway: &GatewayLevels) {
    let count: Levels<Phase> = shelf.count("rooms", "Rooms open, by phase");
    let oldest: Amounts<Phase> = shelf.put_in(
        Unit::Seconds,
        "room_oldest",
        "Longest time that a room has been in this phase",
        Amounts::default(),
    );
    let overdue = shelf.put_in(
        Unit::Seconds,
        "room_overdue",
        "For how long the deadline of the most overdue room has passed: next to nothing, or its owner does not act",
        Gauge::<f64, AtomicU64>::default(),
    );
    for phase in PhaseKind::ALL
        .into_iter()
        .filter(|phase| *phase != PhaseKind::Ended)
    {
        let of_phase = || gateway.rooms.iter().filter(|room| room.phase == phase);
        let labels = Phase { phase: phase.name() };
        count.get_or_create(&labels).set(level(of_phase().count()));
        let longest = of_phase().map(|room| room.in_phase).max().unwrap_or_default();
        oldest.get_or_create(&labels).set(seconds(longest));
    }
    let most = gateway.rooms.iter().map(|room| room.overdue).max();
    overdue.set(seconds(most.unwrap_or_default()));
    let waiting = shelf.count::<Gauge>("rooms_waiting", "Rooms that wait for credit");
    waiting.set(level(gateway.waiting));
    let unread = shelf.count::<Gauge>(
        "mail_unread",
        "News of workers and of the desk that no owner of a room has read yet",
    );
    unread.set(level(gateway.unread_mail));
    total(
        shelf,
        "stale_inputs",
        "What rooms were told that changed nothing: stale, out of turn, or repeated",
        gateway.stale_inputs,
    );
}

fn tables(shelf: &mut Shelf<'_>, gateway: &GatewayLevels, open: Open) {
    let sizes: Levels<What> = shelf.count(
        "open",
        "What has not ended: rooms shown, histories (of which spans are made), and what is kept for them",
    );
    for (what, size) in open.sizes() {
        sizes.get_or_create(&What { what }).set(size);
    }
    let difference: Levels<Between> = shelf.count(
        "conservation_difference",
        "How far apart two numbers are that are equal when nothing is under way: what stays is a leak",
    );
    for (between, apart) in conservation::differences(open) {
        difference.get_or_create(&Between { between }).set(apart);
    }
    let timers = shelf.count::<Gauge>("timers_armed", "Requests with a deadline armed");
    timers.set(level(gateway.tables.timers));
}

fn linked(shelf: &mut Shelf<'_>, workers: &[LinkedWorker], names: &Names) {
    let by_role: Levels<RoleLabel> = shelf.count("workers", "Workers that are linked, by what they do");
    let draining: Levels<RoleLabel> =
        shelf.count("workers_draining", "Of those, workers that take no new rooms");
    for role in [Role::Prefill, Role::Decode, Role::Mixed] {
        let of_role = |drain: bool| {
            workers
                .iter()
                .filter(move |w| w.role == role && (w.draining || !drain))
        };
        let labels = RoleLabel {
            role: labels::role(role),
        };
        by_role.get_or_create(&labels).set(level(of_role(false).count()));
        draining.get_or_create(&labels).set(level(of_role(true).count()));
    }
    let pools = Pools::new(shelf, "", "as it last reported");
    let backlog: Levels<Worker> = shelf.count(
        "prefill_backlog_tokens",
        "Prompt tokens accepted and not yet computed",
    );
    let leases: Levels<Worker> = shelf.count(
        "leases",
        "Attempts of this gateway that a worker holds, as it last reported",
    );
    let promised: Levels<Worker> = shelf.count(
        "promised_blocks",
        "Blocks promised to attempts at a worker, and not got back",
    );
    let bytes = Unit::Bytes;
    let fetched: Counts<Carried> = shelf.put_in(
        bytes.clone(),
        "kv_fetched",
        "KV that a worker fetched",
        Counts::default(),
    );
    let given: Counts<Carried> = shelf.put_in(bytes, "kv_given", "KV that a worker gave", Counts::default());
    for worker in workers {
        let name = names.worker(&worker.name);
        let labels = Worker { worker: name.clone() };
        pools.add(&labels, worker.pool);
        // Added to, not set: beyond the bound of names several workers are one.
        let tokens = i64::try_from(worker.backlog_tokens).unwrap_or(i64::MAX);
        backlog.get_or_create(&labels).inc_by(tokens);
        leases.get_or_create(&labels).inc_by(level(worker.leases));
        promised
            .get_or_create(&labels)
            .inc_by(worker.promised_blocks.into());
        let carried = Carried {
            worker: name,
            transport: names.transport(&worker.transport),
        };
        fetched.get_or_create(&carried).inc_by(worker.bytes_in);
        given.get_or_create(&carried).inc_by(worker.bytes_out);
    }
}

/// Blocks and slots by worker.
struct Pools {
    blocks: Levels<WorkerState>,
    slots: Levels<Worker>,
    used: Levels<Worker>,
}

impl Pools {
    fn new(shelf: &mut Shelf<'_>, who: &str, when: &str) -> Self {
        Self {
            blocks: shelf.count(
                &format!("{who}kv_blocks"),
                &format!("Blocks of a worker's pool by state, {when}"),
            ),
            slots: shelf.count(
                &format!("{who}slots"),
                &format!("Batch slots of a worker, {when}"),
            ),
            used: shelf.count(&format!("{who}slots_used"), "Of those, taken"),
        }
    }

    fn add(&self, labels: &Worker, pool: Pool) {
        for (state, blocks) in [
            ("free", pool.free),
            ("cached", pool.cached),
            ("leased", pool.leased),
            ("quarantined", pool.quarantined),
        ] {
            let worker = labels.worker.clone();
            self.blocks
                .get_or_create(&WorkerState { worker, state })
                .inc_by(blocks.into());
        }
        self.slots.get_or_create(labels).inc_by(pool.slots.into());
        self.used.get_or_create(labels).inc_by(pool.slots_used.into());
    }
}

fn links(shelf: &mut Shelf<'_>, workers: &[LinkedWorker], names: &Names) {
    let rtt: Amounts<Worker> = shelf.put_in(
        Unit::Seconds,
        "link_round_trip",
        "QUIC's estimate of the time to a worker and back",
        Amounts::default(),
    );
    let frames: Counts<WorkerWay> =
        shelf.count("link_frames", "Frames on a worker's present link, by direction");
    let bytes: Counts<WorkerWay> = shelf.put_in(
        Unit::Bytes,
        "link",
        "Bytes of frames on a worker's present link, by direction",
        Counts::default(),
    );
    let dropped: Counts<Worker> = shelf.count(
        "link_frames_dropped",
        "Frames received on a worker's present link and dropped: unknown, malformed or out of bounds",
    );
    let queued: Levels<Worker> = shelf.count("link_queued_frames", "Frames that wait to be sent to a worker");
    let queued_bytes: Levels<Worker> = shelf.put_in(
        Unit::Bytes,
        "link_queued",
        "Bytes of frames that wait to be sent to a worker",
        Levels::default(),
    );
    for worker in workers {
        let Some(link) = worker.link else { continue };
        let labels = Worker {
            worker: names.worker(&worker.name),
        };
        rtt.get_or_create(&labels).set(seconds(link.rtt));
        for (direction, n, size) in [
            ("in", link.frames_in, link.bytes_in),
            ("out", link.frames_out, link.bytes_out),
        ] {
            let way = WorkerWay {
                worker: labels.worker.clone(),
                direction,
            };
            frames.get_or_create(&way).inc_by(n);
            bytes.get_or_create(&way).inc_by(size);
        }
        dropped.get_or_create(&labels).inc_by(link.dropped_in);
        queued.get_or_create(&labels).inc_by(level(link.queued_frames));
        queued_bytes
            .get_or_create(&labels)
            .inc_by(level(link.queued_bytes));
    }
}

fn turned_away(shelf: &mut Shelf<'_>, counts: Option<TurnedAway>) {
    let Some(counts) = counts else { return };
    let by_reason: Counts<Reason> = shelf.count(
        "connections_turned_away",
        "Connections of workers that came to no link, by reason",
    );
    for (reason, count) in [
        ("failed", counts.failed),
        ("refused", counts.refused),
        ("crowded", counts.crowded),
    ] {
        by_reason.get_or_create(&Reason { reason }).inc_by(count);
    }
}

fn own(shelf: &mut Shelf<'_>, workers: &[WorkerLevels], names: &Names) {
    let pools = Pools::new(shelf, "worker_", "as it sees itself");
    let mailbox: Levels<Worker> = shelf.count(
        "worker_mailbox_messages",
        "Messages that wait for a worker's actor",
    );
    let stays: Levels<WorkerPhase> = shelf.count("worker_stays", "Attempts that stay at a worker, by phase");
    let oldest: Amounts<WorkerPhase> = shelf.put_in(
        Unit::Seconds,
        "worker_stay_oldest",
        "Longest time that an attempt has been in this phase at a worker",
        Amounts::default(),
    );
    for worker in workers {
        let name = names.worker(&worker.name);
        let labels = Worker { worker: name.clone() };
        mailbox.get_or_create(&labels).inc_by(level(worker.mailbox));
        if let Some(pool) = worker.pool {
            pools.add(&labels, pool);
        }
        for phase in StayPhase::ALL {
            let of_phase = || worker.stays.iter().filter(|(at, _)| *at == phase);
            let labels = WorkerPhase {
                worker: name.clone(),
                phase: labels::stay_phase(phase),
            };
            stays.get_or_create(&labels).inc_by(level(of_phase().count()));
            let longest = of_phase().map(|(_, since)| *since).max().unwrap_or_default();
            oldest.get_or_create(&labels).set(seconds(longest));
        }
    }
}
