//! The machines of a simulation, and what is done to them.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mesh::DevCa;
use runtime::GatewayHandle;
use tokio::time::{advance, sleep};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::count::Counted;
use crate::fault::{Episode, Fault, GatewayAt, MachineAt, WorkerAt, frame_struck};
use crate::machine::{Life, Machine, World, host, targets};
use crate::network::{Network, Weather};
use crate::plan::Plan;
use crate::transfer;
use crate::witness::Witness;

/// A machine and its life, if it has power and nobody is about to take it.
struct Slot {
    machine: Machine,
    life: Mutex<Option<Life>>,
    /// No fault is done to it any more.
    healed: CancellationToken,
}

impl Slot {
    fn life(&self) -> MutexGuard<'_, Option<Life>> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The whole cluster.
pub(crate) struct Cluster {
    pub(crate) world: Arc<World>,
    slots: BTreeMap<MachineAt, Arc<Slot>>,
    counted: Counted,
}

/// A gateway that has power.
pub(crate) struct LiveGateway {
    pub(crate) at: GatewayAt,
    pub(crate) handle: GatewayHandle,
    pub(crate) died: CancellationToken,
}

impl Cluster {
    /// Gives power to all machines.
    pub(crate) async fn start(plan: &Plan, witness: &Witness) -> Self {
        let counted = Counted::default();
        let world = Arc::new(World {
            plan: plan.clone(),
            network: Network::start(plan.seed, Weather::fair(plan.weather.delay), counted.clone()),
            moves: transfer::Network::new(transfer::Config::default(), plan.seed),
            authority: DevCa::new().expect("an authority"),
            epochs: AtomicU64::new(0),
            targets: targets(plan),
            canaries: Mutex::default(),
            witness: witness.clone(),
        });
        let gateways = (0..plan.gateways).map(|at| MachineAt::Gateway(GatewayAt(at)));
        let workers = (0..plan.workers.len()).map(|at| MachineAt::Worker(WorkerAt(at)));
        let mut slots = BTreeMap::new();
        for at in gateways.chain(workers) {
            let machine = Machine::new(at, &world);
            let life = Mutex::new(Some(machine.start().await));
            slots.insert(
                at,
                Arc::new(Slot {
                    machine,
                    life,
                    healed: CancellationToken::new(),
                }),
            );
        }
        Self {
            world,
            slots,
            counted,
        }
    }

    /// From now on the network and the data path are as the plan has them.
    pub(crate) fn disturb(&self) {
        let world = &self.world;
        world.network.set_weather(world.plan.weather);
        world
            .moves
            .set_default_faults(transfer::Faults::all(world.plan.moves_fail));
    }

    /// The gateways that have power, by their places.
    pub(crate) fn gateways(&self) -> Vec<LiveGateway> {
        let live = self.slots.iter().filter_map(|(at, slot)| {
            let MachineAt::Gateway(at) = *at else { return None };
            let life = slot.life();
            let life = life.as_ref()?;
            Some(LiveGateway {
                at,
                handle: life.gateway.clone()?,
                died: life.died.clone(),
            })
        });
        live.collect()
    }

    fn slot(&self, at: MachineAt) -> &Arc<Slot> {
        &self.slots[&at]
    }

    /// Does something to the cluster. What lasts is undone by [`Cluster::end`], or by itself where power is taken.
    pub(crate) async fn begin(&self, episode: &Episode) {
        let injected = self.apply(episode).await;
        if let Some(name) = episode.fault.name().filter(|_| injected) {
            self.counted.add(name);
        }
        info!(fault = ?episode.fault, lasts_ms = episode.lasts.as_millis(), injected, "a fault");
    }

    async fn apply(&self, episode: &Episode) -> bool {
        let network = &self.world.network;
        match episode.fault {
            Fault::Storm(weather) => network.set_weather(weather),
            Fault::Cut { .. } => self.cut(&episode.fault, true),
            // Nothing moves from a worker to itself.
            Fault::CutData(a, b) if a == b => return false,
            Fault::CutData(a, b) => self.world.moves.cut_both(self.place(a), self.place(b)),
            Fault::Crash(at, death) => return self.crash(at, death, episode.lasts),
            Fault::Restart(at) => return self.restart(at, episode.lasts),
            Fault::Freeze(at) => self.freeze(at, true),
            Fault::Slow(at, times) => self.worker(at).pace.slow(times),
            Fault::Stuck(at) => self.worker(at).pace.hold(true),
            Fault::EngineFails(at) => self.worker(at).pace.fail(),
            Fault::TransferFails(at) => return self.world.moves.break_down(self.place(at)),
            Fault::Moves(at, share) => self
                .world
                .moves
                .set_faults(self.place(at), transfer::Faults::all(share)),
            Fault::Frames(at, kind, fault) => self.slot(at).machine.faults.set(kind, Some(fault)),
            Fault::OwnersFail(at, owners) => {
                let Some(gateway) = self.gateways().into_iter().find(|gateway| gateway.at == at) else {
                    return false;
                };
                gateway.handle.doom(owners, owners / 2);
            }
            Fault::Leap => advance(episode.lasts).await,
            // Done by whoever plays the clients.
            Fault::Rush(_) | Fault::Exodus => {}
        }
        true
    }

    /// Undoes what lasts.
    pub(crate) fn end(&self, episode: &Episode) {
        match episode.fault {
            Fault::Storm(_) => self.world.network.set_weather(self.world.plan.weather),
            Fault::Cut { .. } => self.cut(&episode.fault, false),
            Fault::CutData(a, b) => self.world.moves.heal_both(self.place(a), self.place(b)),
            Fault::Freeze(at) => self.freeze(at, false),
            Fault::Slow(at, _) => self.worker(at).pace.slow(1),
            Fault::Stuck(at) => self.worker(at).pace.hold(false),
            Fault::Moves(at, _) => self
                .world
                .moves
                .set_faults(self.place(at), transfer::Faults::NONE),
            Fault::Frames(at, kind, _) => self.slot(at).machine.faults.set(kind, None),
            Fault::OwnersFail(at, _) => {
                if let Some(gateway) = self.gateways().into_iter().find(|gateway| gateway.at == at) {
                    gateway.handle.doom(0, 0);
                }
            }
            Fault::Crash(..)
            | Fault::Restart(_)
            | Fault::EngineFails(_)
            | Fault::TransferFails(_)
            | Fault::Leap
            | Fault::Rush(_)
            | Fault::Exodus => return,
        }
        info!(fault = ?episode.fault, "is over");
    }

    /// Undoes what the plan has from the beginning (its episodes have ended by now), and gives power back to all that lack it.
    pub(crate) fn heal(&self) {
        self.world
            .network
            .set_weather(Weather::fair(self.world.plan.weather.delay));
        self.world.moves.calm();
        for slot in self.slots.values() {
            slot.machine.pace.heal();
            slot.healed.cancel();
        }
        info!("all is healed");
    }

    /// What was injected in all, with the frames and the moves that met a fault.
    pub(crate) fn injected(&self) -> BTreeMap<&'static str, u64> {
        let all = Counted::default();
        all.add_all(&self.counted.all());
        all.add_all(&self.world.moves.counts());
        for slot in self.slots.values() {
            for ((kind, fault), count) in slot.machine.faults.struck() {
                all.add_many(frame_struck(kind, fault), count);
            }
        }
        all.all()
    }

    fn worker(&self, at: WorkerAt) -> &Machine {
        &self.slot(MachineAt::Worker(at)).machine
    }

    fn place(&self, at: WorkerAt) -> transfer::Place {
        self.worker(at).place()
    }

    fn cut(&self, fault: &Fault, cut: bool) {
        let Fault::Cut {
            gateway,
            worker,
            to_worker,
            to_gateway,
        } = *fault
        else {
            return;
        };
        let (gateway, worker) = (host(MachineAt::Gateway(gateway)), host(MachineAt::Worker(worker)));
        if to_worker {
            self.world.network.cut(gateway, worker, cut);
        }
        if to_gateway {
            self.world.network.cut(worker, gateway, cut);
        }
    }

    fn freeze(&self, at: MachineAt, frozen: bool) {
        let machine = &self.slot(at).machine;
        machine.pace.hold(frozen);
        if frozen {
            self.world.network.freeze(machine.host);
            self.world.moves.freeze(machine.place());
        } else {
            self.world.network.thaw(machine.host);
            self.world.moves.thaw(machine.place());
        }
    }

    fn crash(&self, at: MachineAt, death: transfer::Death, off_for: Duration) -> bool {
        let slot = Arc::clone(self.slot(at));
        let Some(life) = slot.life().take() else {
            return false;
        };
        slot.machine.crash(life, death);
        tokio::spawn(come_back(slot, off_for));
        true
    }

    fn restart(&self, at: MachineAt, off_for: Duration) -> bool {
        let slot = Arc::clone(self.slot(at));
        let Some(life) = slot.life().take() else {
            return false;
        };
        tokio::spawn(async move {
            slot.machine.stop(life).await;
            come_back(slot, off_for).await;
        });
        true
    }
}

/// Gives a machine power again, after a while or when all is healed. Ends with the simulation at the latest.
async fn come_back(slot: Arc<Slot>, off_for: Duration) {
    tokio::select! {
        biased;
        () = slot.healed.cancelled() => {}
        () = sleep(off_for) => {}
    }
    let life = slot.machine.start().await;
    *slot.life() = Some(life);
}
