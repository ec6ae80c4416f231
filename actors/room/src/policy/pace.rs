//! How fast a worker is, by its own measurement: lines through the steps that it has run and the reads that it has made.

/// What each further measurement takes from the weight of those before it.
const FORGET: f64 = 0.995;

/// A line through weighted points: what something of size `x` takes.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
struct Line {
    weight: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Line {
    fn add(&mut self, x: f64, y: f64) {
        let sums = [
            &mut self.weight,
            &mut self.x,
            &mut self.y,
            &mut self.xx,
            &mut self.xy,
        ];
        for (sum, term) in sums.into_iter().zip([1.0, x, y, x * x, x * y]) {
            *sum = *sum * FORGET + term;
        }
    }

    /// Base and slope by least squares, neither less than zero. Points that lie too close for a line to be seen lie on one through zero.
    fn fit(&self) -> (f64, f64) {
        let spread = self.weight * self.xx - self.x * self.x;
        let through_zero = if self.x > 0.0 { self.y / self.x } else { 0.0 };
        if spread <= 1e-6 * self.weight * self.xx {
            return (0.0, through_zero);
        }
        let slope = (self.weight * self.xy - self.x * self.y) / spread;
        let base = (self.y - slope * self.x) / self.weight;
        if slope < 0.0 {
            (self.y / self.weight, 0.0)
        } else if base < 0.0 {
            (0.0, through_zero)
        } else {
            (base, slope)
        }
    }

    fn at(&self, x: f64) -> f64 {
        let (base, slope) = self.fit();
        base + slope * x
    }
}

/// A worker's measured speed. Times are in microseconds. What was never measured takes no time: whoever is new is tried.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct Pace {
    prefill: Line,
    step: Line,
    pull: Line,
}

impl Pace {
    /// A step was run that computed so many positions of prompts, beside answers over `context` positions in all.
    pub fn ran(&mut self, prompt_positions: u32, context: u64, micros: u64) {
        let (context, micros) = (real(context), real(micros));
        if prompt_positions == 0 {
            self.step.add(context, micros);
        } else {
            let answers = self.step.fit().1 * context;
            self.prefill
                .add(f64::from(prompt_positions), (micros - answers).max(0.0));
        }
    }

    /// The KV of so many positions was read.
    pub fn pulled(&mut self, positions: u32, micros: u64) {
        self.pull.add(f64::from(positions), real(micros));
    }

    /// What a prompt of so many positions takes to compute.
    #[must_use]
    pub fn prefill_us(&self, positions: u32) -> f64 {
        self.prefill.at(f64::from(positions))
    }

    /// What a step of answers over so many positions takes.
    #[must_use]
    pub fn step_us(&self, context: u64) -> f64 {
        self.step.at(real(context))
    }

    /// What each further position of context adds to a step.
    #[must_use]
    pub fn step_us_per_position(&self) -> f64 {
        self.step.fit().1
    }

    /// What reading the KV of so many positions takes; nothing, if there is nothing to read.
    #[must_use]
    pub fn pull_us(&self, positions: u32) -> f64 {
        if positions == 0 {
            0.0
        } else {
            self.pull.at(f64::from(positions))
        }
    }

    /// Whether it has computed prompts.
    #[must_use]
    pub fn has_computed(&self) -> bool {
        self.prefill.weight > 0.0
    }
}

/// Counts here are far below 2^53.
#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn real(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::Pace;

    fn near(got: f64, wanted: f64) {
        assert!(
            (got - wanted).abs() <= wanted.abs() * 1e-6 + 1e-6,
            "{got} is not {wanted}"
        );
    }

    #[test]
    fn a_line_is_found_again() {
        let mut pace = Pace::default();
        for n in [100, 4_000, 900, 2_000] {
            pace.ran(n, 0, 12_000 + 38 * u64::from(n));
        }
        near(pace.prefill_us(10_000), 392_000.0);
        for context in [10_000, 60_000, 35_000] {
            pace.ran(0, context, 10_000 + context / 5);
        }
        near(pace.step_us(100_000), 30_000.0);
        near(pace.step_us_per_position(), 0.2);
        // Of a step that does both, the prompt has what the answers do not take.
        pace.ran(1_000, 50_000, 12_000 + 38_000 + 10_000);
        near(pace.prefill_us(10_000), 392_000.0);
    }

    #[test]
    fn what_was_not_measured_takes_no_time_and_one_point_gives_a_rate() {
        let mut pace = Pace::default();
        assert!(!pace.has_computed());
        near(pace.prefill_us(500), 0.0);
        pace.ran(100, 0, 5_000);
        near(pace.prefill_us(200), 10_000.0);
        pace.pulled(100, 1_000);
        near(pace.pull_us(0), 0.0);
        near(pace.pull_us(300), 3_000.0);
    }

    #[test]
    fn nothing_takes_less_than_no_time() {
        let mut pace = Pace::default();
        pace.ran(0, 100, 2_000);
        pace.ran(0, 200, 1_000);
        assert!(pace.step_us(1_000_000) >= 0.0 && pace.step_us_per_position() >= 0.0);
        pace.pulled(100, 100);
        pace.pulled(200, 500);
        assert!(pace.pull_us(1) >= 0.0);
    }
}
