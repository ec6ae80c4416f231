//! One simulation: a runtime of one thread with virtual time, a cluster in it, faults, the healing, and what must hold.

use std::collections::BTreeMap;
use std::sync::{Once, PoisonError};
use std::time::Duration;

use rand::Rng;
use rand::seq::IndexedRandom;
use room::Outcome;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::info;
use tracing_subscriber::layer::SubscriberExt;

use crate::client::{Asked, Clients, End, Manner, Seen, Signals, request};
use crate::cluster::Cluster;
use crate::count::Counted;
use crate::evidence::{Evidence, GatewaySample, Sample};
use crate::fault::{Episode, Fault};
use crate::invariant::{self, Violation};
use crate::plan::{Plan, Spans};
use crate::random::{Random, stream};
use crate::trace::Trace;
use crate::witness::Witness;

/// Between two looks at the gateways.
const LOOK: Duration = Duration::from_millis(500);

/// By then the workers are linked, though the first packets of some are lost.
const FIRST_REQUEST: Duration = Duration::from_secs(6);

/// How many requests a healed cluster is asked.
const PROBES: u64 = 8;

/// What came of a simulation.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// Virtual time that passed.
    pub lasted: Duration,
    /// Requests asked.
    pub requests: usize,
    /// Rooms opened.
    pub rooms: usize,
    /// Answers by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Faults injected, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// What did not hold.
    pub violations: Vec<Violation>,
    /// How long after the healing everything was back.
    pub quiet_after: Option<Duration>,
    /// The trace's number.
    pub digest: u64,
    /// Events in the trace.
    pub events: u64,
    /// The last lines of the trace.
    pub lines: Vec<String>,
}

/// Panics that are injected are no news, and a backtrace takes longer than a simulated second.
fn expect_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let text = panic.payload().downcast_ref::<&str>().copied();
            if !text.is_some_and(|text| text.starts_with("a test's ")) {
                tell(panic);
            }
        }));
    });
}

/// Runs the simulation of a seed. `aloud`: its trace goes to standard error.
///
/// # Panics
/// If the machine gives no runtime.
#[must_use]
pub fn run(seed: u64, spans: Spans, aloud: bool) -> Report {
    expect_panics();
    let trace = Trace::new(aloud);
    let witness = Witness::new(&trace);
    let subscriber = tracing_subscriber::registry()
        .with(trace.clone())
        .with(witness.clone());
    let counted = Counted::default();
    let evidence = tracing::subscriber::with_default(subscriber, || {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let mut evidence = runtime.block_on(simulate(Plan::of(seed, spans), &trace, &counted));
        evidence.said = witness.all();
        evidence
    });
    let all = || evidence.seen.iter().chain(&evidence.probes);
    let mut outcomes = BTreeMap::new();
    for answer in all().flat_map(|seen| &seen.answers) {
        *outcomes
            .entry(label(answer.outcome.map(|(_, outcome)| outcome)))
            .or_default() += 1;
    }
    Report {
        seed,
        lasted: evidence.samples.last().map_or(Duration::ZERO, |last| last.at),
        requests: all().count(),
        rooms: all().map(|seen| seen.rooms.len()).sum(),
        outcomes,
        faults: counted.all(),
        violations: invariant::check(&evidence),
        quiet_after: evidence.quiet.map(|quiet| quiet.saturating_sub(spans.faults)),
        digest: trace.digest(),
        events: trace.events(),
        lines: trace.lines(),
    }
}

fn label(outcome: Option<Outcome>) -> String {
    outcome.map_or_else(|| "the client left".to_owned(), |outcome| format!("{outcome:?}"))
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

async fn simulate(plan: Plan, trace: &Trace, counted: &Counted) -> Evidence {
    trace.begin();
    let cluster = Cluster::start(&plan, counted).await;
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
    director.under_faults().await;
    director.cluster.heal();
    let quiet = director.rest().await;
    let seen = director.clients.all();
    let probes = if quiet.is_some() {
        director.probe().await
    } else {
        Vec::new()
    };
    let world = &director.cluster.world;
    counted.add_all(&world.moves.counts());
    let canaries = world.canaries.lock().unwrap_or_else(PoisonError::into_inner);
    let foreign = canaries.iter().flat_map(|(name, canary)| {
        let found = canary.foreign().into_iter();
        found.map(|foreign| (name.clone(), foreign))
    });
    Evidence {
        seen,
        quiet,
        probes,
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
        let workers = self.cluster.workers();
        let last = self.samples.last();
        !self.clients.any_open()
            && last.is_some_and(|last| {
                last.gateways.len() == self.plan.gateways
                    && last.gateways.iter().all(|gateway| gateway.is_idle(workers))
            })
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

    /// Asks the healed cluster, and waits until everything is back once more.
    async fn probe(&mut self) -> Vec<Seen> {
        self.clients = Clients::default();
        for _ in 0..PROBES {
            let (mut job, _) = request(&self.plan, self.asked, &mut self.load);
            job.timeout = Duration::from_secs(60);
            job.n = 1;
            self.submit(job, Manner::Reads);
        }
        let _ = self.rest().await;
        let probes = self.clients.all();
        info!(
            whole = probes.iter().filter(|seen| seen.end == End::Whole).count(),
            "probed"
        );
        probes
    }
}
