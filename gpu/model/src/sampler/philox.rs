//! Philox 4×32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
//! Any number of its stream can be computed without the ones before it, which is what lets a migrated answer continue as it would have.

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: u32 = 10;

/// The block of random numbers at `counter` under `key`.
fn philox4x32(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut a, mut b, mut c, mut d] = counter;
    let [mut k0, mut k1] = key;
    for _ in 0..ROUNDS {
        let (high0, low0) = wide(MULTIPLIERS[0], a);
        let (high1, low1) = wide(MULTIPLIERS[1], c);
        [a, b, c, d] = [high1 ^ b ^ k0, low1, high0 ^ d ^ k1, low0];
        k0 = k0.wrapping_add(WEYL[0]);
        k1 = k1.wrapping_add(WEYL[1]);
    }
    [a, b, c, d]
}

/// A number in [0, 1) with 53 random bits: the one of `seed` at `position`.
#[allow(clippy::cast_precision_loss, reason = "53 bits are exact in f64")]
pub(super) fn uniform(seed: u64, position: u64) -> f64 {
    let [p0, p1] = halves(position);
    let [high, low, ..] = philox4x32([p0, p1, 0, 0], halves(seed));
    let bits = (u64::from(high) << 32 | u64::from(low)) >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

/// High and low half of a product.
fn wide(a: u32, b: u32) -> (u32, u32) {
    let [low, high] = halves(u64::from(a) * u64::from(b));
    (high, low)
}

/// Low and high half.
#[allow(clippy::cast_possible_truncation, reason = "that is the point")]
fn halves(x: u64) -> [u32; 2] {
    [x as u32, (x >> 32) as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers published with the authors' implementation (Random123).
    #[test]
    fn known_answers() {
        let check = |counter, key, expected| assert_eq!(philox4x32(counter, key), expected);
        check(
            [0; 4],
            [0; 2],
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8],
        );
        check(
            [u32::MAX; 4],
            [u32::MAX; 2],
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
        );
        check(
            [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            [0xa409_3822, 0x299f_31d0],
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
        );
    }

    #[test]
    fn uniform_numbers_are_in_range_and_even() {
        let mut buckets = [0_u32; 10];
        for i in 0..10_000 {
            let u = uniform(i / 100, i % 100);
            assert!((0.0..1.0).contains(&u));
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let bucket = (u * 10.0) as usize;
            buckets[bucket] += 1;
        }
        assert!(buckets.iter().all(|&n| (850..1150).contains(&n)), "{buckets:?}");
    }
}
