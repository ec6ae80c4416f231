//! One direction between two hosts: what happens to each datagram on it.

use std::time::Duration;

use rand::Rng;

use crate::random::Random;

/// How a network treats datagrams. Probabilities are per datagram.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct Weather {
    /// It is lost.
    pub lost: f64,
    /// It comes twice.
    pub doubled: f64,
    /// It is overtaken: it takes [`Weather::late`] longer.
    pub overtaken: f64,
    /// How long the fastest take.
    pub delay: Duration,
    /// How much longer any may take, without a fault.
    pub jitter: Duration,
    /// How much longer one takes that is overtaken, at most.
    pub late: Duration,
}

impl Weather {
    /// Nothing goes wrong.
    #[must_use]
    pub(crate) fn fair(delay: Duration) -> Self {
        Self {
            lost: 0.0,
            doubled: 0.0,
            overtaken: 0.0,
            delay,
            jitter: Duration::ZERO,
            late: Duration::ZERO,
        }
    }
}

/// What becomes of one datagram.
#[derive(Copy, Clone, Debug)]
pub(super) struct Fate {
    first: Option<Duration>,
    second: Option<Duration>,
    overtaken: bool,
}

impl Fate {
    /// After how long each of its copies arrives.
    pub(super) fn arrivals(self) -> impl Iterator<Item = Duration> {
        self.first.into_iter().chain(self.second)
    }

    /// The faults in it.
    pub(super) fn kinds(self) -> impl Iterator<Item = &'static str> {
        let lost = self.first.is_none().then_some("datagram lost");
        let doubled = self.second.map(|_| "datagram doubled");
        let overtaken = self.overtaken.then_some("datagram overtaken");
        lost.into_iter().chain(doubled).chain(overtaken)
    }
}

#[derive(Debug)]
pub(super) struct Path(Random);

impl Path {
    pub(super) fn new(random: Random) -> Self {
        Self(random)
    }

    pub(super) fn judge(&mut self, weather: &Weather) -> Fate {
        let mut fate = Fate {
            first: None,
            second: None,
            overtaken: false,
        };
        if self.happens(weather.lost) {
            return fate;
        }
        fate.overtaken = self.happens(weather.overtaken);
        let late = if fate.overtaken {
            self.up_to(weather.late)
        } else {
            Duration::ZERO
        };
        let arrives = weather.delay + self.up_to(weather.jitter) + late;
        fate.first = Some(arrives);
        if self.happens(weather.doubled) {
            fate.second = Some(arrives + self.up_to(weather.late));
        }
        fate
    }

    fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.0.random_bool(probability)
    }

    fn up_to(&mut self, span: Duration) -> Duration {
        match u64::try_from(span.as_micros()).unwrap_or(u64::MAX) {
            0 => Duration::ZERO,
            micros => Duration::from_micros(self.0.random_range(0..=micros)),
        }
    }
}
