//! Figures that were taken several times.

use std::fmt;

/// The median of some figures, between the least and the greatest.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Spread {
    least: f64,
    pub(super) median: f64,
    greatest: f64,
}

impl Spread {
    /// # Panics
    /// If there are none.
    pub(super) fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        let middle = figures.len() / 2;
        let median = match figures.len() % 2 {
            0 => f64::midpoint(figures[middle - 1], figures[middle]),
            _ => figures[middle],
        };
        Self {
            least: figures[0],
            median,
            greatest: figures[figures.len() - 1],
        }
    }
}

/// The geometric mean of ratios: twice and half cancel out.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Mean {
    mean: f64,
    /// How far the mean may be from what more figures would give: its standard error.
    error: f64,
}

impl Mean {
    pub(super) fn of(ratios: impl IntoIterator<Item = f64>) -> Self {
        let logs: Vec<f64> = ratios.into_iter().map(f64::ln).collect();
        let count = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / count;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let error = (squares / (count - 1.0).max(1.0) / count).sqrt();
        Self {
            mean: mean.exp(),
            error: mean.exp() * error,
        }
    }
}

/// The precision is that of the figures.
impl fmt::Display for Mean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(3);
        write!(f, "{:.digits$} ± {:.digits$}", self.mean, self.error)
    }
}

/// The precision is that of the figures.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(3);
        let Self {
            least,
            median,
            greatest,
        } = self;
        write!(f, "{median:.digits$} ({least:.digits$} to {greatest:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_between_the_ends() {
        assert_eq!(format!("{:.1}", Spread::of([3.0, 1.0, 2.5])), "2.5 (1.0 to 3.0)");
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).median, 2.5);
    }

    #[test]
    fn the_mean_of_twice_and_half_is_as_much() {
        // Logarithms of 0.693 and -0.693: their deviation is 0.980, of two figures.
        assert_eq!(format!("{:.3}", Mean::of([2.0, 0.5])), "1.000 ± 0.693");
        assert_eq!(format!("{:.2}", Mean::of([1.5])), "1.50 ± 0.00");
    }
}
