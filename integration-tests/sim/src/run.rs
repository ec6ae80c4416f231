//! One simulation: a runtime of one thread with virtual time, a cluster in it, faults, the healing, and what must hold.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::time::Duration;

use rand::Rng;
use rand::seq::IndexedRandom;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::info;
use tracing_subscriber::layer::SubscriberExt;

use crate::client::{Asked, Clients, Manner, Signals, request};
use crate::cluster::Cluster;
use crate::evidence::{Evidence, GatewaySample, Probe, Sample};
use crate::fault::{Episode, Fault};
use crate::panics::{self, Panics};
use crate::plan::{Plan, Spans};
use crate::random::{Random, stream};
use crate::report::Report;
use crate::trace::Trace;
use crate::witness::Witness;

/// Between two looks at the gateways.
const LOOK: Duration = Duration::from_millis(500);

/// The first request of the load.
const FIRST_REQUEST: Duration = Duration::from_secs(8);

/// How long a new cluster may take until all are linked.
const LINKED: Duration = Duration::from_secs(5);

/// Longer than heartbeats are apart, and than anything on the data path is late.
const SETTLED: Duration = Duration::from_secs(5);

/// How many requests a cluster is asked at once when nothing is wrong with it: at the beginning, and after the healing.
const PROBES: u64 = 8;

/// Runs the simulation of a seed. `aloud`: its trace goes to standard error.
///
/// # Panics
/// If the machine gives no runtime.
#[must_use]
pub fn run(seed: u64, spans: Spans, aloud: bool) -> Report {
    panics::watch();
    let trace = Trace::new(aloud);
    let witness = Witness::new(&trace);
    let subscriber = tracing_subscriber::registry().with(trace.clone());
    let plan = Plan::of(seed, spans);
    let played = tracing::subscriber::with_default(subscriber, || {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        // The runtime ends in there too: what panics as its tasks are dropped belongs to this seed and to no other.
        catch_unwind(AssertUnwindSafe(|| {
            let runtime = runtime;
            runtime.block_on(simulate(plan, &trace, &witness))
        }))
    });
    let panics = panics::seen();
    match played {
        Ok(evidence) => Report::of(
            seed,
            Evidence {
                panics,
                said: witness.all(),
                ..evidence
            },
            &trace,
        ),
        Err(_) => Report::of_panic(seed, spans, panics),
    }
}

/// Whoever plays the world: clients come, faults begin and end, and somebody looks now and then.
struct Director {
    plan: Plan,
    trace: Trace,
    cluster: Cluster,
    clients: Clients,
    load: Random,
    asked: u64,
    /// Those who are there now leave by it.
    exodus: CancellationToken,
    samples: Vec<Sample>,
}

async fn simulate(plan: Plan, trace: &Trace, witness: &Witness) -> Evidence {
    trace.begin();
    let cluster = Cluster::start(&plan, witness).await;
    let mut director = Director {
        load: stream(plan.seed, "load"),
        plan,
        trace: trace.clone(),
        cluster,
        clients: Clients::default(),
        asked: 0,
        exodus: CancellationToken::new(),
        samples: Vec::new(),
    };
    let before = director.probe().await;
    director.cluster.disturb();
    director.clients = Clients::default();
    director.under_faults().await;
    director.cluster.heal();
    let quiet = director.rest().await;
    let seen = std::mem::take(&mut director.clients).all();
    let after = match quiet {
        Some(_) => director.probe().await,
        None => Probe::default(),
    };
    // What workers said last is then of after all that happened, and what was late on the data path has come.
    sleep(SETTLED).await;
    director.look();
    let world = &director.cluster.world;
    // So that the order of what happened there is part of the trace.
    info!(fingerprint = world.moves.fingerprint(), "the data path");
    let canaries = world.canaries.lock().unwrap_or_else(PoisonError::into_inner);
    let foreign = canaries.iter().flat_map(|(name, canary)| {
        let found = canary.foreign().into_iter();
        found.map(|foreign| (name.clone(), foreign))
    });
    Evidence {
        seen,
        quiet,
        before,
        after,
        panics: Panics::default(),
        injected: director.cluster.injected(),
        foreign: foreign.collect(),
        moves: world.moves.violations(),
        reads_open: world.moves.in_flight(),
        samples: std::mem::take(&mut director.samples),
        plan: director.plan.clone(),
        said: Vec::new(),
    }
}

/// What the director does next.
enum Next {
    Begin(usize),
    End(usize),
    Ask,
    Look,
}

impl Director {
    async fn under_faults(&mut self) {
        let began = Instant::now() - self.trace.now();
        let mut due: BTreeMap<(Duration, u64), Next> = BTreeMap::new();
        let mut number = 0;
        let mut then = |due: &mut BTreeMap<_, _>, at: Duration, next: Next| {
            number += 1;
            due.insert((at, number), next);
        };
        let episodes = self.plan.episodes.clone();
        for (at, episode) in episodes.iter().enumerate() {
            then(&mut due, episode.at, Next::Begin(at));
            then(&mut due, episode.ends(), Next::End(at));
        }
        then(&mut due, FIRST_REQUEST, Next::Ask);
        then(&mut due, LOOK, Next::Look);
        while let Some(((at, _), next)) = due.pop_first() {
            if at > self.plan.spans.faults {
                break;
            }
            sleep_until(began + at).await;
            match next {
                Next::Begin(episode) => self.begin(&episodes[episode]).await,
                Next::End(episode) => self.cluster.end(&episodes[episode]),
                Next::Ask => {
                    self.ask();
                    let pause = self.pause();
                    then(&mut due, at + pause, Next::Ask);
                }
                Next::Look => {
                    self.look();
                    then(&mut due, at + LOOK, Next::Look);
                }
            }
        }
        sleep_until(began + self.plan.spans.faults).await;
    }

    /// Until the next request: exponentially distributed.
    fn pause(&mut self) -> Duration {
        let uniform: f64 = self.load.random_range(0.000_1..1.0);
        self.plan.between_requests.mul_f64(-uniform.ln())
    }

    async fn begin(&mut self, episode: &Episode) {
        self.cluster.begin(episode).await;
        match episode.fault {
            Fault::Rush(requests) => (0..requests).for_each(|_| self.ask()),
            Fault::Exodus => std::mem::take(&mut self.exodus).cancel(),
            _ => {}
        }
    }

    /// One more request, to any gateway that has power; none if there is none.
    fn ask(&mut self) {
        let (job, manner) = request(&self.plan, self.asked, &mut self.load);
        self.submit(job, manner);
    }

    fn submit(&mut self, job: runtime::Job, manner: Manner) {
        self.asked += 1;
        let gateways = self.cluster.gateways();
        let Some(gateway) = gateways.choose(&mut self.load) else {
            return;
        };
        let to = Asked {
            job,
            manner,
            gateway: gateway.handle.clone(),
            place: gateway.at.0,
        };
        let signals = Signals {
            died: gateway.died.clone(),
            exodus: self.exodus.clone(),
        };
        self.clients.ask(&self.trace, to, signals);
    }

    fn look(&mut self) {
        let gateways = self.cluster.gateways();
        self.samples.push(Sample {
            at: self.trace.now(),
            gateways: gateways
                .iter()
                .map(|gateway| GatewaySample::of(&gateway.handle))
                .collect(),
        });
    }

    /// Whether nothing of any room is left, by the last look.
    fn is_idle(&self) -> bool {
        let last = self.samples.last();
        !self.clients.any_open() && last.is_some_and(|last| last.is_idle(&self.plan))
    }

    /// Waits until everything is back, and says when that was.
    async fn rest(&mut self) -> Option<Duration> {
        let by = self.trace.now() + self.plan.spans.rest;
        while self.trace.now() < by {
            self.look();
            if self.is_idle() {
                info!("everything is back");
                return Some(self.trace.now());
            }
            sleep(LOOK).await;
        }
        None
    }

    /// Asks a cluster that nothing is wrong with, the same each time, and waits until everything is back.
    async fn probe(&mut self) -> Probe {
        let linked_by = self.trace.now() + LINKED;
        while !self.is_idle() && self.trace.now() < linked_by {
            sleep(LOOK).await;
            self.look();
        }
        let began = self.trace.now();
        let mut random = stream(self.plan.seed, "probe");
        for _ in 0..PROBES {
            let (mut job, _) = request(&self.plan, self.asked, &mut random);
            job.timeout = Duration::from_secs(60);
            job.n = 1;
            // However slow the cluster is, none of them waits as long as a queue lasts.
            job.max_new = job.max_new.min(16);
            // Nothing of it is in any cache yet.
            job.salt = u64::MAX - self.asked;
            self.submit(job, Manner::Reads);
        }
        let _ = self.rest().await;
        let seen = self.clients.all();
        let last = seen.iter().map(|seen| seen.ended).max().unwrap_or(began);
        let took = last.saturating_sub(began);
        info!(took_ms = took.as_millis(), "probed");
        Probe { seen, took }
    }
}
