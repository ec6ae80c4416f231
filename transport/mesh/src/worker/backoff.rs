//! How long to wait before dialling again.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::config::Config;

/// Doubles from the least to the longest wait; each wait is between a half and all of that, so that workers that lost
/// the same gateway do not come back in step.
#[derive(Debug)]
pub(super) struct Backoff {
    min: Duration,
    max: Duration,
    next: Duration,
    rng: StdRng,
}

impl Backoff {
    /// `stream` tells apart the users of one seed.
    pub(super) fn new(config: &Config, stream: u64) -> Self {
        let rng = match config.seed {
            Some(seed) => StdRng::seed_from_u64(seed ^ stream.rotate_left(32)),
            None => StdRng::from_os_rng(),
        };
        let (min, max) = (config.backoff_min, config.backoff_max.max(config.backoff_min));
        Self {
            min,
            max,
            next: min,
            rng,
        }
    }

    /// The wait after one more failure.
    pub(super) fn wait(&mut self) -> Duration {
        let wait = self.next.mul_f64(self.rng.random_range(0.5..=1.0));
        self.next = (self.next * 2).min(self.max);
        wait
    }

    /// It worked: begin anew.
    pub(super) fn reset(&mut self) {
        self.next = self.min;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Backoff;
    use crate::config::Config;

    fn check(backoff: &mut Backoff, bound_ms: u64) {
        let wait = backoff.wait();
        let bound = Duration::from_millis(bound_ms);
        assert!(wait >= bound / 2 && wait <= bound, "{wait:?} for {bound:?}");
    }

    #[test]
    fn it_doubles_to_its_bound_and_begins_anew() {
        let config = Config {
            backoff_min: Duration::from_millis(50),
            backoff_max: Duration::from_millis(300),
            seed: Some(1),
            ..Config::default()
        };
        let mut backoff = Backoff::new(&config, 1);
        for bound in [50, 100, 200, 300, 300] {
            check(&mut backoff, bound);
        }
        backoff.reset();
        check(&mut backoff, 50);
    }

    #[test]
    fn a_seed_repeats() {
        let config = Config {
            seed: Some(7),
            ..Config::default()
        };
        let waits = |stream| {
            (0..4)
                .map(|_| 0)
                .scan(Backoff::new(&config, stream), |b, _| Some(b.wait()))
        };
        assert!(waits(1).eq(waits(1)));
        assert!(waits(1).ne(waits(2)));
    }
}
