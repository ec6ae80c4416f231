//! A figure of each round, or why there is none.

use crate::bench::spread::Spread;

/// One figure a round. What failed once is not measured.
#[derive(Default)]
pub(super) struct Series {
    figures: Vec<f64>,
    error: Option<String>,
}

impl Series {
    pub(super) fn add(&mut self, figure: Result<f64, String>) {
        match figure {
            Ok(figure) => self.figures.push(figure),
            Err(error) => self.error = Some(error),
        }
    }

    /// Why it could not be measured.
    pub(super) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Its figures, if all could be taken.
    fn all(&self) -> &[f64] {
        if self.error.is_some() { &[] } else { &self.figures }
    }

    pub(super) fn spread(&self) -> Option<Spread> {
        (!self.all().is_empty()).then(|| Spread::of(self.all().iter().copied()))
    }

    /// This by the other, round by round.
    pub(super) fn by(&self, other: &Self) -> Option<Spread> {
        let ratios: Vec<f64> = self
            .all()
            .iter()
            .zip(other.all())
            .map(|(own, other)| own / other)
            .collect();
        (!ratios.is_empty()).then(|| Spread::of(ratios))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(figures: [Result<f64, String>; 2]) -> Series {
        let mut series = Series::default();
        figures.into_iter().for_each(|figure| series.add(figure));
        series
    }

    #[test]
    fn what_failed_once_has_no_figure() {
        let whole = series([Ok(1.0), Ok(3.0)]);
        let failed = series([Ok(1.0), Err("gone".to_owned())]);
        assert_eq!(failed.error(), Some("gone"));
        assert!(failed.spread().is_none() && whole.by(&failed).is_none());
        assert_eq!(whole.spread().unwrap().median, 2.0);
        assert_eq!(whole.by(&series([Ok(2.0), Ok(3.0)])).unwrap().median, 0.75);
    }
}
