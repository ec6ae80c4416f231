//! What a seed makes: the cluster, its load, and when what goes wrong.

use std::time::Duration;

use mock::{Answer, Latency, MockConfig, OnForeign, Verify};
use rand::Rng;
use rand::seq::IndexedRandom;
use wire::Role;

use crate::fault::{Episode, episodes};
use crate::network::Weather;
use crate::random::{Random, stream};

/// How long things last.
#[derive(Copy, Clone, Debug)]
pub struct Spans {
    /// Under faults.
    pub faults: Duration,
    /// After everything was healed: by then every room has ended and everything has come back.
    pub rest: Duration,
}

impl Spans {
    /// In all `total`, of which the last minute and a half is for rest.
    #[must_use]
    pub fn of(total: Duration) -> Self {
        let rest = Duration::from_secs(90).min(total / 2);
        Self {
            faults: total - rest,
            rest,
        }
    }
}

/// A simulation as its seed makes it.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The seed.
    pub seed: u64,
    /// How long it lasts.
    pub spans: Spans,
    /// How many gateways.
    pub gateways: usize,
    /// The workers.
    pub workers: Vec<Role>,
    /// The model they serve.
    pub mock: MockConfig,
    /// How fast they serve it.
    pub latency: Latency,
    /// Sequences a worker may have.
    pub slots: u32,
    /// Prompt tokens a step may compute.
    pub chunk_tokens: u32,
    /// Between heartbeats.
    pub heartbeat: Duration,
    /// Of links.
    pub lease: Duration,
    /// The network where nothing is wrong with it.
    pub weather: Weather,
    /// The share of moves of KV that meet a fault where nothing else is wrong.
    pub moves_fail: f64,
    /// Mean time between two requests.
    pub between_requests: Duration,
    /// What goes wrong, in order of time.
    pub episodes: Vec<Episode>,
}

/// The clusters there are.
const CLUSTERS: [&[Role]; 8] = [
    &[Role::Prefill, Role::Decode],
    &[Role::Prefill, Role::Decode],
    &[Role::Prefill, Role::Prefill, Role::Decode],
    &[Role::Prefill, Role::Decode, Role::Decode],
    &[Role::Prefill, Role::Prefill, Role::Decode, Role::Decode],
    &[Role::Mixed],
    &[Role::Mixed, Role::Mixed],
    &[Role::Mixed, Role::Prefill, Role::Decode],
];

impl Plan {
    /// The plan of a seed.
    #[must_use]
    pub(crate) fn of(seed: u64, spans: Spans) -> Self {
        let mut random = stream(seed, "plan");
        let workers = CLUSTERS.choose(&mut random).copied().unwrap_or_default().to_vec();
        let gateways = if random.random_bool(0.25) { 2 } else { 1 };
        let (heartbeat, lease) = if random.random_bool(0.7) {
            (250, 2_000)
        } else {
            (500, 4_000)
        };
        let mut plan = Self {
            seed,
            spans,
            gateways,
            workers,
            mock: model(&mut random),
            latency: Latency {
                step_micros: random.random_range(1_000..8_000),
                prefill_token_micros: random.random_range(100..1_500),
                decode_micros: random.random_range(100..1_000),
            },
            slots: random.random_range(3..=10),
            chunk_tokens: random.random_range(4..=24),
            heartbeat: Duration::from_millis(heartbeat),
            lease: Duration::from_millis(lease),
            weather: weather(&mut random),
            moves_fail: random.random_range(0.0..0.2),
            between_requests: Duration::from_millis(random.random_range(600..4_000)),
            episodes: Vec::new(),
        };
        // One in twenty goes through without a fault: nothing may fail there.
        if random.random_bool(0.05) {
            plan.weather = Weather::fair(plan.weather.delay);
            plan.moves_fail = 0.0;
        } else {
            plan.episodes = episodes(&plan, &mut random);
        }
        plan
    }
}

fn model(random: &mut Random) -> MockConfig {
    let mut mock = MockConfig {
        vocabulary: 500,
        context_tokens: 512,
        answer: Answer::Between(1, 60),
        verify: Verify::Some(3),
        on_foreign: OnForeign::Continue,
        ..MockConfig::default()
    };
    mock.shape.blocks = random.random_range(28..=96);
    mock.shape.block_tokens = 4;
    mock.shape.layers = 1;
    mock
}

fn weather(random: &mut Random) -> Weather {
    let delay = Duration::from_micros(random.random_range(100..3_000));
    if random.random_bool(0.4) {
        return Weather::fair(delay);
    }
    Weather {
        lost: random.random_range(0.0..0.03),
        doubled: random.random_range(0.0..0.02),
        overtaken: random.random_range(0.0..0.05),
        delay,
        jitter: delay,
        late: Duration::from_millis(random.random_range(1..60)),
    }
}
