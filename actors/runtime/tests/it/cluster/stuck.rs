//! Holding a room in a phase.

use kv::Fault as KvFault;
use mesh::Fault;
use room::PhaseKind;
use runtime::{Answer, Job};
use wire::Kind;

use super::{Cluster, Setup, job};

/// The phases that a room goes through with a pair of workers before it has its outcome.
pub(crate) const OF_A_PAIR: [PhaseKind; 5] = [
    PhaseKind::Queued,
    PhaseKind::Reserving,
    PhaseKind::Prefilling,
    PhaseKind::Pulling,
    PhaseKind::Decoding,
];

/// A cluster with a room that stays in one phase until [`Stuck::heal`].
pub(crate) struct Stuck {
    pub(crate) cluster: Cluster,
    pub(crate) answer: Answer,
    pub(crate) phase: PhaseKind,
    /// Whoever has the slot that the room waits for.
    in_the_way: Option<Answer>,
}

impl Stuck {
    /// Brings `job` into `phase`, in a cluster made as `setup` says: of a prefill and a decode worker, or of one mixed worker, which
    /// never pulls.
    pub(crate) async fn reach(mut setup: Setup, phase: PhaseKind, job: Job) -> Self {
        if phase == PhaseKind::Queued {
            setup.slots = 1;
        }
        let cluster = Cluster::start(setup).await;
        let in_the_way = cluster.hold(phase).await;
        let answer = cluster.submit(job).await;
        let room = answer.rooms()[0];
        let what = format!("the room is {phase}");
        cluster.until(&what, |c| c.is_in(room, phase)).await;
        if matches!(phase, PhaseKind::Prefilling | PhaseKind::Decoding) {
            let holds = |c: &Cluster| c.workers.iter().any(|worker| worker.gate.holds());
            cluster.until("its engine is held in a step", holds).await;
        }
        Self {
            cluster,
            answer,
            phase,
            in_the_way,
        }
    }

    /// Lets everything go its way again, and waits until nothing is left of any room but those that still run.
    pub(crate) fn heal(&mut self) {
        self.in_the_way = None;
        self.cluster.heal();
    }
}

impl Cluster {
    /// Sets the switch that holds rooms in `phase`.
    async fn hold(&self, phase: PhaseKind) -> Option<Answer> {
        let (first, last) = (&self.workers[0], &self.workers[self.workers.len() - 1]);
        match phase {
            PhaseKind::Queued => {
                last.gate.close_after(2);
                let answer = self.submit(job(99, 6, 50)).await;
                let room = answer.rooms()[0];
                self.until("the slot is taken", |c| c.is_in(room, PhaseKind::Decoding))
                    .await;
                return Some(answer);
            }
            PhaseKind::Reserving => last.faults.set(Kind::Reserved, Some(Fault::Drop)),
            PhaseKind::Prefilling => first.gate.close_after(0),
            PhaseKind::Pulling => last.transfer().on_read(0, KvFault::HoldStart),
            // A mixed worker computes the prompt first: no test's takes more steps.
            PhaseKind::Decoding if self.workers.len() == 1 => last.gate.close_after(5),
            PhaseKind::Decoding => last.gate.close_after(2),
            PhaseKind::Draining | PhaseKind::Ended => first.transfer().hold_withdrawn(true),
        }
        None
    }

    /// Resets every switch.
    pub(crate) fn heal(&self) {
        for kind in Kind::ALL {
            self.faults.set(*kind, None);
        }
        for worker in &self.workers {
            for kind in Kind::ALL {
                worker.faults.set(*kind, None);
            }
            worker.faults.cut(false, false);
            worker.gate.open();
            worker.transfer().release();
        }
    }
}
