//! What can go wrong with a cluster, and when it does: drawn from the seed, before anything runs.

use std::time::Duration;

use rand::Rng;
use rand::seq::IndexedRandom;
use wire::Kind;

use crate::network::Weather;
use crate::plan::Plan;
use crate::random::Random;
use crate::transfer::Death;

/// A gateway, by its place.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Debug)]
pub(crate) struct GatewayAt(pub usize);

/// A worker, by its place.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Debug)]
pub(crate) struct WorkerAt(pub usize);

/// Either.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Debug)]
pub(crate) enum MachineAt {
    /// A gateway.
    Gateway(GatewayAt),
    /// A worker.
    Worker(WorkerAt),
}

/// Something that goes wrong, for a while or once.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Fault {
    /// The network is bad.
    Storm(Weather),
    /// Nothing gets from a gateway to a worker, from the worker to the gateway, or both.
    Cut {
        /// Whose link.
        gateway: GatewayAt,
        /// With whom.
        worker: WorkerAt,
        /// What the gateway sends is cut off.
        to_worker: bool,
        /// What the worker sends is cut off.
        to_gateway: bool,
    },
    /// The data path between two workers is cut, while their links are not.
    CutData(WorkerAt, WorkerAt),
    /// The machine ends at once, and comes back as another incarnation.
    Crash(MachineAt, Death),
    /// The machine ends in order, and comes back as another incarnation.
    Restart(MachineAt),
    /// Nothing that the machine sends leaves it, nothing reaches it, and nothing that it computes ends.
    Freeze(MachineAt),
    /// The worker's steps take so many times as long.
    Slow(WorkerAt, u32),
    /// The worker's step does not end.
    Stuck(WorkerAt),
    /// The worker's engine fails.
    EngineFails(WorkerAt),
    /// Whatever moves the worker's KV fails, as if its thread had panicked.
    TransferFails(WorkerAt),
    /// Moves of KV from and to the worker fail in all ways, a share of them.
    Moves(WorkerAt, f64),
    /// Frames of a kind that the machine sends are lost, doubled or late.
    Frames(MachineAt, Kind, mesh::Fault),
    /// Owners of requests panic: so many of those to come, at birth, and right after.
    OwnersFail(GatewayAt, u32),
    /// Everything stands still at once, and then it is later.
    Leap,
    /// So many requests come at once.
    Rush(u32),
    /// Every client leaves.
    Exodus,
}

impl Fault {
    /// The name it is counted by; none where each of its strikes is counted instead.
    #[must_use]
    pub(crate) fn name(&self) -> Option<&'static str> {
        Some(match self {
            Self::Storm(_) => "network storm",
            Self::Cut {
                to_worker: true,
                to_gateway: true,
                ..
            } => "link cut both ways",
            Self::Cut { .. } => "link cut one way",
            Self::CutData(..) => "data path cut",
            Self::Crash(MachineAt::Gateway(_), _) => "gateway crash",
            Self::Crash(MachineAt::Worker(_), Death::Crash) => "worker crash",
            Self::Crash(MachineAt::Worker(_), Death::Silent) => "worker loses power",
            Self::Restart(MachineAt::Gateway(_)) => "gateway restart in order",
            Self::Restart(MachineAt::Worker(_)) => "worker restart in order",
            Self::Freeze(_) => "freeze and thaw",
            Self::Slow(..) => "slow worker",
            Self::Stuck(_) => "engine stuck",
            Self::EngineFails(_) => "engine failure",
            Self::TransferFails(_) => "transfer failure",
            Self::Leap => "clock leap",
            Self::Rush(_) => "rush of requests",
            Self::Moves(..) | Self::Frames(..) | Self::OwnersFail(..) | Self::Exodus => return None,
        })
    }
}

/// The name that a frame is counted by which met a fault of this [name](mesh::Fault::name).
pub(crate) fn frame_struck(kind: Kind, fault: &'static str) -> &'static str {
    match (kind, fault) {
        (Kind::Close, "lost") => "frame lost: an abort",
        (Kind::Heartbeat, "lost") => "frame lost: a digest",
        (_, "lost") => "frame lost: any other",
        (_, "sent twice") => "frame sent twice",
        (_, "sent again later") => "frame sent again later",
        _ => "frame late, overtaken by others",
    }
}

/// A fault in its time.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Episode {
    /// When it begins.
    pub at: Duration,
    /// How long it lasts.
    pub lasts: Duration,
    /// What it is.
    pub fault: Fault,
}

impl Episode {
    /// When it is over.
    #[must_use]
    pub(crate) fn ends(&self) -> Duration {
        self.at + self.lasts
    }
}

/// The cluster is up by then.
const FIRST_FAULT: Duration = Duration::from_secs(12);

/// What goes wrong in a plan: something every few seconds, the next often before the last is over.
pub(crate) fn episodes(plan: &Plan, random: &mut Random) -> Vec<Episode> {
    let mut episodes = Vec::new();
    let gap_ms = random.random_range(4_000..20_000);
    let mut at = FIRST_FAULT;
    while at < plan.spans.faults {
        let fault = fault(plan, random);
        let longest_ms = match fault {
            Fault::Restart(_)
            | Fault::Leap
            | Fault::Rush(_)
            | Fault::Exodus
            | Fault::EngineFails(_)
            | Fault::TransferFails(_) => 3_000,
            // What happens to single moves has to meet some.
            Fault::Moves(..) => 60_000,
            _ => 15_000,
        };
        // Short ones are as likely as long ones: what is over before a lease ends matters as much as what is not.
        let lasts_ms = if random.random_bool(0.5) {
            random.random_range(10..2_000)
        } else {
            random.random_range(2_000..=longest_ms)
        };
        let lasts = Duration::from_millis(lasts_ms).min(plan.spans.faults - at);
        episodes.push(Episode { at, lasts, fault });
        at += Duration::from_millis(random.random_range(gap_ms / 10..gap_ms * 2));
    }
    episodes
}

fn fault(plan: &Plan, random: &mut Random) -> Fault {
    let gateway = GatewayAt(random.random_range(0..plan.gateways));
    let worker = WorkerAt(random.random_range(0..plan.workers.len()));
    let other = WorkerAt(random.random_range(0..plan.workers.len()));
    // Gateways are hit less often: with them goes what is to be seen.
    let machine = if random.random_bool(0.2) {
        MachineAt::Gateway(gateway)
    } else {
        MachineAt::Worker(worker)
    };
    match random.random_range(0..100) {
        0..5 => Fault::Storm(storm(random)),
        5..18 => {
            let which = random.random_range(0..4);
            Fault::Cut {
                gateway,
                worker,
                to_worker: which != 1,
                to_gateway: which != 0,
            }
        }
        18..23 => Fault::CutData(worker, other),
        23..29 => Fault::Crash(machine, Death::Crash),
        29..35 => Fault::Crash(machine, Death::Silent),
        35..42 => Fault::Restart(machine),
        42..50 => Fault::Freeze(machine),
        50..55 => Fault::Slow(worker, random.random_range(3..40)),
        55..59 => Fault::Stuck(worker),
        59..61 => Fault::EngineFails(worker),
        61..63 => Fault::TransferFails(worker),
        63..73 => Fault::Moves(worker, random.random_range(0.1..1.0)),
        73..86 => frames(gateway, worker, random),
        86..89 => Fault::OwnersFail(gateway, random.random_range(1..4)),
        89..92 => Fault::Leap,
        92..97 => Fault::Rush(random.random_range(10..60)),
        _ => Fault::Exodus,
    }
}

fn storm(random: &mut Random) -> Weather {
    Weather {
        lost: random.random_range(0.05..0.5),
        doubled: random.random_range(0.0..0.1),
        overtaken: random.random_range(0.0..0.3),
        delay: Duration::from_millis(random.random_range(1..100)),
        jitter: Duration::from_millis(random.random_range(0..50)),
        late: Duration::from_millis(random.random_range(1..500)),
    }
}

/// What gateways send, and the losses that matter most more often.
const TO_WORKERS: [Kind; 8] = [
    Kind::Close,
    Kind::Close,
    Kind::Heartbeat,
    Kind::Reserve,
    Kind::Prefill,
    Kind::Pull,
    Kind::Release,
    Kind::Release,
];

/// What workers send.
const TO_GATEWAYS: [Kind; 9] = [
    Kind::HeartbeatAck,
    Kind::Reserved,
    Kind::Refused,
    Kind::Progress,
    Kind::Tokens,
    Kind::Published,
    Kind::Pulled,
    Kind::Failed,
    Kind::Closed,
];

fn frames(gateway: GatewayAt, worker: WorkerAt, random: &mut Random) -> Fault {
    let (machine, kinds) = if random.random_bool(0.5) {
        (MachineAt::Gateway(gateway), &TO_WORKERS[..])
    } else {
        (MachineAt::Worker(worker), &TO_GATEWAYS[..])
    };
    let kind = kinds.choose(random).copied().unwrap_or(Kind::Close);
    let later = Duration::from_millis(random.random_range(1..3_000));
    let fault = match random.random_range(0..4) {
        // A digest speaks of all that was sent before it, and a link is one stream: it may be lost with the link, but what was sent
        // after it never comes before it.
        _ if kind == Kind::Heartbeat => mesh::Fault::Drop,
        0 => mesh::Fault::Drop,
        1 => mesh::Fault::Duplicate,
        2 => mesh::Fault::Again(later),
        _ => mesh::Fault::Delay(later),
    };
    Fault::Frames(machine, kind, fault)
}
