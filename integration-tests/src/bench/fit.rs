//! How a figure grows with another: the power that fits best.

use std::fmt;

/// `y` grows as `x` to the `exponent`: the least squares of logarithms.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Fit {
    exponent: f64,
    /// The share of the variance that it explains.
    r2: f64,
}

impl Fit {
    /// Of pairs of positive figures; none of fewer than two different `x`.
    pub(super) fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let logs: Vec<(f64, f64)> = pairs.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
        let count = logs.len() as f64;
        let mean_x = logs.iter().map(|(x, _)| x).sum::<f64>() / count;
        let mean_y = logs.iter().map(|(_, y)| y).sum::<f64>() / count;
        let sum = |of: fn(f64, f64) -> f64| logs.iter().map(|(x, y)| of(x - mean_x, y - mean_y)).sum::<f64>();
        let (xx, xy, yy) = (sum(|x, _| x * x), sum(|x, y| x * y), sum(|_, y| y * y));
        // What does not vary at all is explained by an exponent of 0.
        let r2 = if yy < 1e-18 { 1.0 } else { xy * xy / (xx * yy) };
        (xx > 0.0).then_some(Self {
            exponent: xy / xx,
            r2,
        })
    }
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:+.2} (r² {:.2})", self.exponent, self.r2)
    }
}

#[cfg(test)]
mod tests {
    use super::Fit;

    #[test]
    fn powers_are_found() {
        let square: Vec<(f64, f64)> = (1..9).map(|x| (f64::from(x), 3.0 * f64::from(x * x))).collect();
        assert_eq!(Fit::of(&square).unwrap().to_string(), "+2.00 (r² 1.00)");
        assert_eq!(
            Fit::of(&[(1.0, 5.0), (10.0, 5.0)]).unwrap().to_string(),
            "+0.00 (r² 1.00)"
        );
        // Logarithms (0, 0), (1, 1), (2, 0): no slope, and nothing explained.
        let e = std::f64::consts::E;
        assert_eq!(
            Fit::of(&[(1.0, 1.0), (e, e), (e * e, 1.0)]).unwrap().to_string(),
            "+0.00 (r² 0.00)"
        );
        assert!(Fit::of(&[(2.0, 5.0)]).is_none());
    }
}
