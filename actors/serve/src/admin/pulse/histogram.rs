//! Lengths of time in buckets that grow by a fifth each: a quantile is known to within that, and adding one is a few instructions.

use room::Span;

use super::Quantiles;

/// Buckets an octave.
const FINE: u32 = 4;

/// Octaves, from 64 us to over an hour.
const OCTAVES: u32 = 26;

/// What is shorter is all in the first bucket.
const LEAST_US: u64 = 64;

const BUCKETS: usize = (FINE * OCTAVES) as usize;

/// Counts by bucket. Empty ones take no memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    counts: Vec<u32>,
}

/// The bucket of a length.
fn bucket(micros: u64) -> usize {
    let scaled = micros.max(LEAST_US);
    let octave = scaled.ilog2() - LEAST_US.ilog2();
    // The two bits behind the first one.
    let fine = (scaled >> (scaled.ilog2() - 2)) & 3;
    ((octave * FINE) as usize + fine as usize).min(BUCKETS - 1)
}

/// The middle of a bucket, in milliseconds.
fn middle_ms(bucket: usize) -> f64 {
    let (octave, fine) = (bucket / FINE as usize, bucket % FINE as usize);
    let octave_us = (LEAST_US << octave) as f64;
    let part = (fine as f64 + 0.5) / f64::from(FINE);
    octave_us * (1.0 + part) / 1_000.0
}

impl Histogram {
    pub(super) fn add(&mut self, span: Span) {
        if self.counts.is_empty() {
            self.counts.resize(BUCKETS, 0);
        }
        if let Some(count) = self.counts.get_mut(bucket(span.micros)) {
            *count = count.saturating_add(1);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        if other.counts.is_empty() {
            return;
        }
        self.counts.resize(BUCKETS, 0);
        for (own, more) in self.counts.iter_mut().zip(&other.counts) {
            *own = own.saturating_add(*more);
        }
    }

    pub(super) fn quantiles(&self) -> Quantiles {
        Quantiles {
            p50_ms: self.quantile(0.50),
            p90_ms: self.quantile(0.90),
            p99_ms: self.quantile(0.99),
        }
    }

    fn quantile(&self, share: f64) -> Option<f64> {
        let all: u64 = self.counts.iter().map(|count| u64::from(*count)).sum();
        let rank = (all as f64 * share).ceil();
        let mut below = 0_u64;
        let found = self.counts.iter().position(|count| {
            below += u64::from(*count);
            all > 0 && below as f64 >= rank
        });
        found.map(middle_ms)
    }
}

#[cfg(test)]
mod tests {
    use room::Span;

    use super::{Histogram, bucket, middle_ms};

    #[test]
    fn a_quantile_is_within_an_eighth() {
        for micros in [64, 100, 1_000, 12_345, 999_999, 60_000_000, 3_000_000_000] {
            let told = middle_ms(bucket(micros)) * 1_000.0;
            let off = (told - micros as f64).abs() / micros as f64;
            assert!(off <= 0.125, "{micros} is told as {told}");
        }
    }

    #[test]
    fn buckets_rise_with_what_is_in_them() {
        let mut last = 0;
        for micros in (0..2_000_000).step_by(37) {
            let here = bucket(micros);
            assert!(here >= last, "{micros}");
            last = here;
        }
        assert_eq!(bucket(0), 0);
        assert!(bucket(u64::MAX) > last);
    }

    #[test]
    fn quantiles_count_from_below() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantiles().p50_ms, None);
        for _ in 0..99 {
            histogram.add(Span::from_millis(10));
        }
        histogram.add(Span::from_millis(1_000));
        let quantiles = histogram.quantiles();
        let near = |told: Option<f64>, ms: f64| (told.unwrap_or(0.0) - ms).abs() <= ms / 8.0;
        assert!(
            near(quantiles.p50_ms, 10.0) && near(quantiles.p99_ms, 10.0),
            "{quantiles:?}"
        );
        histogram.add(Span::from_millis(1_000));
        assert!(near(histogram.quantiles().p99_ms, 1_000.0));
    }
}
