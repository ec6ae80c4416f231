//! Position embeddings that have been stretched for longer contexts, as divisors of the frequencies.

use std::f64::consts::TAU;

use super::ConfigError;
use super::unsupported;
use crate::folder::Fields;

/// The divisors of the `dims / 2` frequencies over `base` by what `config.json` calls the scaling. None where there is none.
#[allow(
    clippy::cast_possible_truncation,
    reason = "rounding to single precision is meant"
)]
pub(super) fn divisors(scaling: &Fields, base: f64, dims: usize) -> Result<Option<Vec<f32>>, ConfigError> {
    let kind = if scaling.says("rope_type") {
        "rope_type"
    } else {
        "type"
    };
    let positive = |key: &str| -> Result<f64, ConfigError> {
        let number = scaling.float(key)?;
        if number.is_finite() && (number as f32).is_normal() && number > 0.0 {
            Ok(number)
        } else {
            Err(scaling.wrong(key, "a number above 0").into())
        }
    };
    match scaling.text(kind)? {
        "default" => Ok(None),
        "linear" => Ok(Some(vec![positive("factor")? as f32; dims / 2])),
        "llama3" => {
            let (factor, old) = (positive("factor")?, positive("original_max_position_embeddings")?);
            let (low, high) = (positive("low_freq_factor")?, positive("high_freq_factor")?);
            if high <= low {
                return Err(scaling
                    .wrong("high_freq_factor", "above `low_freq_factor`")
                    .into());
            }
            let divisor = |pair: usize| {
                let wave = TAU * base.powf(2.0 * pair as f64 / dims as f64);
                // How many waves the old context held; between few and many the divisor changes smoothly.
                let waves = old / wave;
                let smooth = ((waves - low) / (high - low)).clamp(0.0, 1.0);
                (1.0 / ((1.0 - smooth) / factor + smooth)) as f32
            };
            Ok(Some((0..dims / 2).map(divisor).collect()))
        }
        other => unsupported(format!("rope scaling `{other}` is not supported")),
    }
}
