//! Curves as SVG, drawn by `plotters`.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::prelude::{
    ChartBuilder, Circle, IntoDrawingArea, IntoLogRange, LineSeries, PathElement, RGBColor, SVGBackend, WHITE,
};
use plotters::style::{Color, IntoFont};

/// The same for both kinds of axis, whose types differ.
macro_rules! draw_on {
    ($graph:expr, $chart:expr) => {
        $chart
            .configure_mesh()
            .x_desc($graph.x.as_str())
            .y_desc($graph.y.as_str())
            .light_line_style(WHITE)
            .draw()?;
        for (curve, colour) in $graph.curves.iter().zip(COLOURS.iter().cycle()) {
            let line = LineSeries::new(curve.points.iter().copied(), colour.stroke_width(2));
            $chart
                .draw_series(line)?
                .label(curve.name.as_str())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
            $chart.draw_series(curve.points.iter().map(|at| Circle::new(*at, 3, colour.filled())))?;
        }
        $chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(160, 160, 160))
            .draw()?;
    };
}

const SIZE: (u32, u32) = (640, 400);

/// One for each policy: told apart by those who do not see all colours too.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(213, 94, 0),
    RGBColor(86, 86, 86),
];

/// A named line through points in order.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// What it is of.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// Curves over one axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Graph {
    /// What is shown.
    pub title: String,
    /// Along the bottom.
    pub x: String,
    /// Along the side.
    pub y: String,
    /// Whether the bottom is logarithmic.
    pub log_x: bool,
    /// In the order of the legend.
    pub curves: Vec<Curve>,
}

impl Graph {
    /// Draws it into a file.
    ///
    /// # Errors
    /// When it has no point, or the file cannot be written.
    pub fn draw(&self, path: &Path) -> Result<()> {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let least = points().map(|(x, _)| *x).fold(f64::INFINITY, f64::min);
        let most = points().map(|(x, _)| *x).fold(0.0, f64::max);
        let high = points().map(|(_, y)| *y).fold(0.0, f64::max) * 1.1;
        if !least.is_finite() {
            return Err(anyhow!("{} has no points", self.title));
        }
        let area = SVGBackend::new(path, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut builder = ChartBuilder::on(&area);
        builder
            .caption(&self.title, ("sans-serif", 17).into_font())
            .margin(12)
            .x_label_area_size(38)
            .y_label_area_size(52);
        let high = high.max(1e-9);
        if self.log_x {
            let mut chart = builder.build_cartesian_2d((least..most).log_scale(), 0.0..high)?;
            draw_on!(self, chart);
        } else {
            let mut chart = builder.build_cartesian_2d(0.0..most * 1.02, 0.0..high)?;
            draw_on!(self, chart);
        }
        area.present()?;
        Ok(())
    }
}
