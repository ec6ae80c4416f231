//! Whole clusters under virtual time.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Part, recorded};
use crate::Stamp;
use crate::claim::Claim;
use crate::files::Error;
use crate::text::{count, decimal, len, paragraph, table};

/// Hours of cluster time, and faults, that are asked for.
const HOURS: f64 = 2_000.0;
const FAULTS: u64 = 1_000_000;

/// A recording that goes on with the seeds after those of the first.
const MORE: &str = "sim-more.json";

/// What `sim many` writes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Simulation {
    recorded: Option<Stamp>,
    /// Of those that went on with the next seeds.
    #[serde(default)]
    more: Vec<Stamp>,
    first_seed: u64,
    virtual_minutes_each: u64,
    wall_seconds: f64,
    seeds: u64,
    cluster_hours: f64,
    requests: u64,
    rooms: u64,
    outcomes: BTreeMap<String, u64>,
    faults: u64,
    faults_by_kind: BTreeMap<String, u64>,
    slowest_rest_ms: u64,
    slowest_rest_seed: u64,
    #[serde(default)]
    slowest_again_ms: Option<u64>,
    #[serde(default)]
    slowest_again_seed: Option<u64>,
    events: u64,
    broken: Vec<Broken>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Broken {
    seed: u64,
    violations: Vec<String>,
}

impl Simulation {
    /// Whether this goes on where `first` ended, in the same way.
    fn follows(&self, first: &Self) -> bool {
        self.first_seed == first.first_seed + first.seeds
            && self.virtual_minutes_each == first.virtual_minutes_each
    }

    /// Both, as if they had been one.
    fn and(mut self, more: Self) -> Self {
        self.more.extend(more.recorded);
        self.wall_seconds += more.wall_seconds;
        self.seeds += more.seeds;
        self.cluster_hours += more.cluster_hours;
        self.requests += more.requests;
        self.rooms += more.rooms;
        self.faults += more.faults;
        self.events += more.events;
        for (all, others) in [
            (&mut self.outcomes, more.outcomes),
            (&mut self.faults_by_kind, more.faults_by_kind),
        ] {
            for (name, number) in others {
                *all.entry(name).or_default() += number;
            }
        }
        if more.slowest_rest_ms > self.slowest_rest_ms {
            (self.slowest_rest_ms, self.slowest_rest_seed) = (more.slowest_rest_ms, more.slowest_rest_seed);
        }
        if more.slowest_again_ms > self.slowest_again_ms {
            (self.slowest_again_ms, self.slowest_again_seed) =
                (more.slowest_again_ms, more.slowest_again_seed);
        }
        self.broken.extend(more.broken);
        self
    }
}

/// From the most frequent on.
fn by_count(counts: &BTreeMap<String, u64>) -> Vec<(&String, u64)> {
    let mut sorted: Vec<_> = counts.iter().map(|(name, count)| (name, *count)).collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    sorted
}

impl Part for Simulation {
    const TITLE: &'static str = "Whole clusters, simulated";
    const RECIPE: &'static str = "just sim-many N";
    const KEPT: &'static str = "sim.json";
    const ASKED: &'static str = "no seed breaks an invariant; 2,000 cluster-hours; a million faults";

    fn recorded(target: &Path) -> Result<Option<Self>, Error> {
        let first: Option<Self> = recorded(&target.join(Self::KEPT))?;
        let path = target.join(MORE);
        match (first, recorded::<Self>(&path)?) {
            (Some(first), Some(more)) if more.follows(&first) => Ok(Some(first.and(more))),
            (_, Some(more)) => {
                let begins = more.first_seed;
                let why = format!(
                    "it begins with seed {begins}, and sim.json does not end there: record it anew, or remove it"
                );
                Err(Error::new(&path, &why))
            }
            (first, None) => Ok(first),
        }
    }

    fn stamps(&self) -> Vec<Option<&Stamp>> {
        let more = self.more.iter().map(Some);
        [self.recorded.as_ref()].into_iter().chain(more).collect()
    }

    fn claims(&self) -> Vec<Claim> {
        let broken = self.broken.len();
        vec![
            Claim::new(
                "no seed breaks an invariant",
                format!("{} of {} seeds do", len(broken), count(self.seeds)),
                broken == 0 && self.seeds > 0,
            ),
            Claim::new(
                format!("at least {} cluster-hours", decimal(HOURS)),
                decimal(self.cluster_hours),
                self.cluster_hours >= HOURS,
            ),
            Claim::new(
                format!("at least {} faults", count(FAULTS)),
                count(self.faults),
                self.faults >= FAULTS,
            ),
        ]
    }

    fn section(&self, out: &mut String, _: &Path) -> Result<(), Error> {
        let last = self.first_seed + self.seeds.saturating_sub(1);
        paragraph(
            out,
            &format!(
                "The real actors, the real wire and real QUIC, on one thread and under virtual time; only the network, the KV transfer and \
                 the model are simulated. A seed draws the cluster, its load and its faults: a phase under faults, then everything is \
                 healed, and everything has to end, to come back, and to work, as fast as at the beginning. Seeds {} to {}, of {} virtual \
                 minutes each; `just sim SEED` tells one of them again. Of datagrams, frames and moves of KV each is counted that meets a \
                 fault; a cut, a storm or a machine that fails is counted once, whatever is lost by it.",
                self.first_seed, last, self.virtual_minutes_each
            ),
        );
        let of = |name: &str, text: String| vec![name.to_owned(), text];
        let mut figures = vec![
            of("cluster-hours", decimal(self.cluster_hours)),
            of("requests", count(self.requests)),
            of("rooms", count(self.rooms)),
            of("faults", count(self.faults)),
            of("events in the traces", count(self.events)),
            of(
                "longest time from the healing until everything was back, virtual seconds",
                format!(
                    "{}.{:03} (seed {})",
                    self.slowest_rest_ms / 1_000,
                    self.slowest_rest_ms % 1_000,
                    self.slowest_rest_seed
                ),
            ),
            of("seconds that it took", decimal(self.wall_seconds)),
        ];
        if let (Some(slower_ms), Some(seed)) = (self.slowest_again_ms, self.slowest_again_seed) {
            let slowest = of(
                "most that the same requests took longer after the healing than at first, virtual milliseconds",
                format!("{} (seed {seed})", count(slower_ms)),
            );
            figures.insert(figures.len() - 1, slowest);
        }
        table(out, &["", "in all"], figures);
        let rows = |counts| {
            by_count(counts)
                .into_iter()
                .map(|(name, number)| vec![name.clone(), count(number)])
        };
        table(out, &["fault", "how often"], rows(&self.faults_by_kind));
        table(out, &["answers that ended", "how many"], rows(&self.outcomes));
        if !self.broken.is_empty() {
            let row = |broken: &Broken| {
                vec![
                    format!("`just sim {}`", broken.seed),
                    broken.violations.join("; "),
                ]
            };
            table(
                out,
                &["broken seed", "what does not hold"],
                self.broken.iter().map(row),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Simulation;
    use crate::parts::shown;

    fn kept(hours: f64, faults: u64, broken: &str) -> String {
        format!(
            r#"{{"first_seed": 1, "virtual_minutes_each": 10, "wall_seconds": 7200.0, "seeds": 12345, "cluster_hours": {hours},
            "requests": 7, "rooms": 8, "outcomes": {{"completed": 5}}, "faults": {faults},
            "faults_by_kind": {{"clock leap": 3, "lost": 1200}},
            "slowest_rest_ms": 9050, "slowest_rest_seed": 77, "slowest_again_ms": 1317, "slowest_again_seed": 112, "events": 9, "broken": [{broken}]}}"#
        )
    }

    fn check(kept: &str, lines: &[&str]) {
        let text = shown::<Simulation>(kept);
        for line in lines {
            assert!(text.contains(line), "no {line:?} in\n{text}");
        }
    }

    #[test]
    fn a_recording_that_is_large_enough() {
        check(
            &kept(2_057.5, 1_000_000, ""),
            &[
                "an invariant: 0 of 12,345 seeds do: true",
                "2,000 cluster-hours: 2,058: true",
                "at least 1,000,000 faults: 1,000,000: true",
                "Seeds 1 to 12345, of 10 virtual minutes each",
                "| 1,317 (seed 112) |\n| seconds that it took |",
                "| lost | 1,200 |\n| clock leap | 3 |",
                "| 9.050 (seed 77) |",
                "| seconds that it took | 7,200 |",
            ],
        );
    }

    #[test]
    fn a_small_recording_with_a_broken_seed() {
        check(
            &kept(0.8, 900, r#"{"seed": 4, "violations": ["INV-01: a | b"]}"#),
            &[
                "an invariant: 1 of 12,345 seeds do: false",
                "2,000 cluster-hours: 0.8: false",
                "at least 1,000,000 faults: 900: false",
                "| `just sim 4` | INV-01: a \\| b |",
            ],
        );
    }

    #[test]
    fn a_recording_that_goes_on_where_another_ended() {
        let read = |text: &str| serde_json::from_str::<Simulation>(text).unwrap();
        let first = || read(&kept(1_778.0, 900_000, ""));
        let next = kept(300.0, 200_000, r#"{"seed": 12350, "violations": ["INV-02"]}"#);
        let next = next.replace(r#""first_seed": 1,"#, r#""first_seed": 12346,"#);
        let next = || read(&next.replace("9050", "9051"));
        assert!(next().follows(&first()));
        assert!(!first().follows(&next()) && !first().follows(&first()));
        let all = first().and(next());
        assert_eq!((all.first_seed, all.seeds, all.requests), (1, 24_690, 14));
        assert_eq!((all.cluster_hours, all.faults), (2_078.0, 1_100_000));
        assert_eq!(
            (all.faults_by_kind["lost"], all.outcomes["completed"]),
            (2_400, 10)
        );
        assert_eq!((all.slowest_rest_ms, all.slowest_again_ms), (9_051, Some(1_317)));
        assert_eq!(all.broken.len(), 1);
    }
}
