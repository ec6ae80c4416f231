//! A histogram of times whose buckets are 2 % wide.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How much longer the times of a bucket are than those of the one before.
const WIDTH: f64 = 1.02;
/// The last bucket: 1.02 to the 1,150th is more than two hours of microseconds.
const LAST: usize = 1_150;

/// Times, each counted in the bucket that it falls in; from a microsecond to two hours.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<(usize, u64)>", into = "Vec<(usize, u64)>")]
pub struct Histogram {
    buckets: Vec<u64>,
}

impl Histogram {
    /// Counts a time.
    #[expect(clippy::cast_possible_truncation, reason = "rounding down is meant")]
    pub fn add(&mut self, time: Duration) {
        let us = (time.as_nanos() as f64 / 1e3).max(1.0);
        self.add_to((us.ln() / WIDTH.ln()) as usize, 1);
    }

    fn add_to(&mut self, bucket: usize, count: u64) {
        let bucket = bucket.min(LAST);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += count;
    }

    /// Counts all that another has counted.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, &count) in other.buckets.iter().enumerate() {
            self.add_to(bucket, count);
        }
    }

    /// How many times it has counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The time that this share (0 to 1) of all is not above, in milliseconds, to 1 %; `NaN` of none.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "there are fewer times than that")]
    pub fn quantile_ms(&self, share: f64) -> f64 {
        let wanted = ((self.count() as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return WIDTH.powf(bucket as f64 + 0.5) / 1e3;
            }
        }
        f64::NAN
    }
}

/// Of the buckets that are not empty.
impl From<Vec<(usize, u64)>> for Histogram {
    fn from(kept: Vec<(usize, u64)>) -> Self {
        let mut histogram = Self::default();
        for (bucket, count) in kept {
            histogram.add_to(bucket, count);
        }
        histogram
    }
}

impl From<Histogram> for Vec<(usize, u64)> {
    fn from(histogram: Histogram) -> Self {
        let all = histogram.buckets.into_iter().enumerate();
        all.filter(|(_, count)| *count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_off_by_a_hundredth_at_most() {
        let mut histogram = Histogram::default();
        assert!(histogram.quantile_ms(0.5).is_nan());
        for ms in 1..=1_000 {
            histogram.add(Duration::from_millis(ms));
        }
        for (share, ms) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1_000.0), (0.0, 1.0)] {
            let found = histogram.quantile_ms(share);
            assert!((found / ms - 1.0).abs() < 0.0101, "{share}: {found}");
        }
    }

    #[test]
    fn it_survives_being_kept_and_adds_up() {
        let mut histogram = Histogram::default();
        for time in [
            Duration::ZERO,
            Duration::from_micros(70),
            Duration::from_secs(1_000_000),
        ] {
            histogram.add(time);
        }
        let kept = serde_json::to_string(&histogram).unwrap();
        let mut again: Histogram = serde_json::from_str(&kept).unwrap();
        assert_eq!(again, histogram);
        again.merge(&histogram);
        assert_eq!(again.count(), 6);
    }
}
