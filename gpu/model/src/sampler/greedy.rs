//! The most likely token, in one pass that the compiler makes vectors of.

use engine::Token;

/// Logits that are looked at side by side.
const LANES: usize = 16;
/// Logits of which only the highest is kept at first; where it stands is looked for in one such part.
const PART: usize = 64 * LANES;

/// The lowest token id of those with the highest logit; `None` if no logit is above minus infinity.
///
/// # Errors
/// The first token whose logit is not a number or plus infinity.
pub(super) fn most_likely(logits: &[f32]) -> Result<Option<Token>, usize> {
    let (mut max, mut at) = (f32::NEG_INFINITY, None);
    for (i, part) in logits.chunks(PART).enumerate() {
        let (highest, sound) = highest(part);
        if !sound {
            let bad = |l: &f32| l.is_nan() || *l == f32::INFINITY;
            return Err(i * PART + part.iter().position(bad).unwrap_or_default());
        }
        if highest > max {
            (max, at) = (highest, Some((i, part)));
        }
    }
    let found = at.and_then(|(i, part)| Some(i * PART + part.iter().position(|l| *l == max)?));
    Ok(found.and_then(|token| Token::try_from(token).ok()))
}

/// The highest logit, and whether all are numbers below plus infinity.
fn highest(logits: &[f32]) -> (f32, bool) {
    let (lanes, rest) = logits.as_chunks::<LANES>();
    let mut highest = [f32::NEG_INFINITY; LANES];
    // As masks: a vector of them is one instruction to combine.
    let mut unsound = [0_u32; LANES];
    for lane in lanes {
        for ((highest, unsound), &logit) in highest.iter_mut().zip(&mut unsound).zip(lane) {
            *highest = if logit > *highest { logit } else { *highest };
            *unsound |= u32::from(!is_sound(logit));
        }
    }
    let (mut max, mut sound) = (f32::NEG_INFINITY, unsound == [0; LANES]);
    for &logit in highest.iter().chain(rest) {
        max = if logit > max { logit } else { max };
        sound &= is_sound(logit);
    }
    (max, sound)
}

/// Whether it is a number below plus infinity.
fn is_sound(logit: f32) -> bool {
    logit < f32::INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, one after the other.
    fn slow(logits: &[f32]) -> Result<Option<Token>, usize> {
        if let Some(bad) = logits.iter().position(|l| l.is_nan() || *l == f32::INFINITY) {
            return Err(bad);
        }
        let mut best = (f32::NEG_INFINITY, None);
        for (token, &logit) in (0..).zip(logits) {
            if logit > best.0 {
                best = (logit, Some(token));
            }
        }
        Ok(best.1)
    }

    #[test]
    fn as_if_looked_at_one_by_one() {
        for len in [0, 1, 5, 16, 17, PART - 1, PART, PART + 1, 3 * PART + 21] {
            // Few values, so that many are equal; both zeros among them.
            let few = [-1.5, 0.0, -0.0, f32::NEG_INFINITY, -0.25];
            let logits: Vec<f32> = (0..len).map(|i| few[i * i % 7 % 5]).collect();
            assert_eq!(most_likely(&logits), slow(&logits), "{len}");
            assert_eq!(most_likely(&vec![f32::NEG_INFINITY; len]), Ok(None), "{len}");
            for at in [0, len / 2, len.saturating_sub(1)] {
                for value in [7.0, f32::NAN, f32::INFINITY] {
                    let mut logits = logits.clone();
                    logits.iter_mut().skip(at).step_by(90).for_each(|l| *l = value);
                    assert_eq!(most_likely(&logits), slow(&logits), "{value} at {at} of {len}");
                }
            }
        }
    }
}
