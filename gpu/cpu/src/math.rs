//! Elementary functions with the same bits at every level: plain arithmetic without branches, vectorised by the compiler.

/// e to the power `x`, to about one unit in the last place. Below −87.3 it stays at the smallest normal number, above 88.3 at
/// about 2.2e38.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    const LOWEST: f32 = -87.3;
    const HIGHEST: f32 = 88.3;
    /// Adding it leaves the nearest integer in the low bits of the mantissa.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts, the first with few enough bits that its products with exponents are exact.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;

    let x = if x < LOWEST { LOWEST } else { x };
    let x = if x > HIGHEST { HIGHEST } else { x };
    let rounded = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = rounded - ROUND;
    let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, x));
    // Cephes' minimax polynomial for (exp(r) - 1 - r) / r² on ±ln 2 / 2.
    let p = 1.987_569_1e-4_f32;
    let p = p.mul_add(r, 1.398_2e-3);
    let p = p.mul_add(r, 8.333_452e-3);
    let p = p.mul_add(r, 4.166_579_6e-2);
    let p = p.mul_add(r, 1.666_666_5e-1);
    let p = p.mul_add(r, 0.5);
    let p = p.mul_add(r * r, r) + 1.0;
    // The integer, shifted into the exponent. Two's complement makes negative ones right.
    let power = rounded.to_bits().wrapping_add(127) << 23;
    p * f32::from_bits(power)
}

/// x · sigmoid(x)
#[inline(always)]
pub(crate) fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// The tanh approximation of GELU.
#[inline(always)]
pub(crate) fn gelu(x: f32) -> f32 {
    const ROOT_2_OVER_PI: f32 = 0.797_884_6;
    let inner = ROOT_2_OVER_PI * x * (0.044_715 * x).mul_add(x, 1.0);
    // (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u))
    x / (1.0 + exp(-2.0 * inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares over a range, with an error relative to the larger of the result and `floor`.
    #[track_caller]
    fn check(
        name: &str,
        f: fn(f32) -> f32,
        exact: fn(f64) -> f64,
        from: f32,
        to: f32,
        floor: f64,
        tolerance: f64,
    ) {
        for i in 0..=200_000 {
            let x = from + (to - from) * (i as f32 / 200_000.0);
            let (actual, expected) = (f64::from(f(x)), exact(f64::from(x)));
            let error = (actual - expected).abs() / expected.abs().max(floor);
            assert!(error <= tolerance, "{name}({x}) is {actual}, expected {expected}");
        }
    }

    #[test]
    fn functions_are_accurate() {
        check("exp", exp, f64::exp, -87.0, 88.0, 0.0, 1.5e-7);
        check("exp", exp, f64::exp, -0.5, 0.5, 0.0, 1.2e-7);
        check("silu", silu, |x| x / (1.0 + (-x).exp()), -80.0, 80.0, 1e-30, 4e-7);
        let gelu_exact =
            |x: f64| 0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044_715 * x * x * x)).tanh());
        check("gelu", gelu, gelu_exact, -10.0, 10.0, 1e-3, 3e-6);
    }

    #[test]
    fn the_ends_are_tame() {
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(f32::NEG_INFINITY) < 1.3e-38 && exp(f32::NEG_INFINITY) > 0.0);
        assert!(exp(f32::INFINITY).is_finite() && exp(f32::INFINITY) > 2e38);
        assert!(exp(f32::NAN).is_nan());
        assert!(silu(-1e30).abs() < 1e-7 && silu(f32::NAN).is_nan());
        assert!(gelu(-200.0).abs() < 1e-30);
        assert_eq!((silu(200.0), gelu(200.0)), (200.0, 200.0));
    }
}
