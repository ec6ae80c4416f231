//! Sixteen lanes at a time, of `f32` or of integers, on whatever the CPU has.
//!
//! All levels compute the same bits: every operation is one IEEE operation a lane (fused multiply-add included), lanes are
//! summed by one fixed tree (8+8, 4+4, 2+2, 1+1), and sums of integers are exact. Kernels are written once, generic over [`Simd`], and instantiated per
//! [`Level`] inside a function that has the level's instructions enabled, so plain loops in them are vectorised for it as well.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod level;
mod portable;

pub(crate) use level::Kernel;
pub use level::Level;
#[cfg(test)]
pub(crate) use portable::Portable;

/// Number of lanes.
pub(crate) const LANES: usize = 16;

/// One vector in memory.
pub(crate) type Lane = [f32; LANES];

/// The bytes of sixteen lanes in memory.
pub(crate) type Bytes = [u8; 4 * LANES];

/// Products of half bytes that may be added up: two of each fit into 16 bits so often.
pub(crate) const MOST_HALVES: usize = 8;

/// The instructions of one level. A value of an implementing type is proof that the CPU has them; only [`Level::run`] makes one.
pub(crate) trait Simd: Copy {
    /// Sixteen numbers in registers.
    type V: Copy;
    /// Sixteen integers in registers.
    type I: Copy;
    /// Sixty-four bytes in registers, four to a lane.
    type B: Copy;
    /// Sums of products of half bytes that are not yet added up to sixteen integers.
    type H: Copy;
    /// Whether sixteen accumulators fit into registers.
    const WIDE: bool;
    /// What [`Simd::dot_bytes`] takes from every byte.
    const BIAS: i32;

    fn zero(self) -> Self::V;
    fn splat(self, x: f32) -> Self::V;
    fn load(self, from: &Lane) -> Self::V;
    fn store(self, v: Self::V, to: &mut Lane);
    /// An IEEE half-precision number.
    fn half(self, from: [u8; 2]) -> f32;
    /// Sixteen small integers as numbers.
    fn unsigned(self, from: &[u8; LANES]) -> Self::V;
    /// Sixteen small integers in two's complement as numbers.
    fn signed(self, from: &[u8; LANES]) -> Self::V;
    /// The low and the high halves of sixteen bytes as numbers.
    fn nibbles(self, from: &[u8; LANES]) -> [Self::V; 2];
    /// `a * b + c`, rounded once.
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// The sum of the lanes, by the fixed tree.
    fn sum(self, v: Self::V) -> f32;
    /// Sixteen IEEE half-precision numbers.
    fn halves(self, from: &[u8; 2 * LANES]) -> Self::V;
    /// The same integer in all lanes.
    fn ints(self, x: i32) -> Self::I;
    /// Integers as numbers, rounded to nearest.
    fn floats(self, x: Self::I) -> Self::V;
    fn bytes(self, from: &Bytes) -> Self::B;
    /// The low and the high halves of all bytes.
    fn split(self, bytes: Self::B) -> [Self::B; 2];
    /// To every lane, the products of its four bytes, which are at most 127, with the four of `x`, which are at least −127.
    fn dot(self, acc: Self::I, bytes: Self::B, x: [i8; 4]) -> Self::I;
    /// No products of half bytes yet; they are to be added to `acc`.
    fn open_halves(self, acc: Self::I) -> Self::H;
    /// As [`Simd::dot`], of bytes that are at most 15; at most [`MOST_HALVES`] times.
    fn dot_halves(self, sums: Self::H, bytes: Self::B, x: [i8; 4]) -> Self::H;
    /// The sums are added to the `acc` that they were opened with.
    fn close_halves(self, sums: Self::H, acc: Self::I) -> Self::I;
    /// The same for any bytes, with [`Simd::BIAS`] taken from each of them first.
    fn dot_bytes(self, acc: Self::I, bytes: Self::B, x: [i8; 4]) -> Self::I;

    /// The sums of several vectors.
    #[inline(always)]
    fn sums<const N: usize>(self, v: [Self::V; N]) -> [f32; N] {
        let mut sums = [0.0; N];
        for i in 0..N {
            sums[i] = self.sum(v[i]);
        }
        sums
    }

    /// Loads fewer than sixteen numbers; the missing lanes are 0.
    #[inline(always)]
    fn load_partial(self, from: &[f32]) -> Self::V {
        let mut lane = [0.0; LANES];
        for (to, from) in lane.iter_mut().zip(from) {
            *to = *from;
        }
        self.load(&lane)
    }
}

/// The fixed tree over the lanes of a vector in memory.
#[inline(always)]
pub(crate) fn tree_sum(v: &Lane) -> f32 {
    let mut s = *v;
    let mut half = LANES / 2;
    while half > 0 {
        for l in 0..half {
            s[l] += s[l + half];
        }
        half /= 2;
    }
    s[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::numbers;

    /// Every operation over the given vectors, in one list of bits.
    struct All<'a>(&'a [f32]);

    impl Kernel for All<'_> {
        type Output = Vec<u32>;

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Vec<u32> {
            let (lanes, _) = self.0.as_chunks::<LANES>();
            let mut out = Vec::new();
            let mut acc = simd.zero();
            let mut vectors = [simd.splat(0.5); 16];
            for (i, lane) in lanes.iter().enumerate() {
                acc = simd.fma(simd.load(lane), simd.load(&lanes[lanes.len() - 1 - i]), acc);
                vectors[i % 16] = acc;
                out.push(simd.sum(acc).to_bits());
            }
            let mut memory = [0.0; LANES];
            simd.store(acc, &mut memory);
            out.extend(memory.map(f32::to_bits));
            out.extend(simd.sums(vectors).map(f32::to_bits));
            out.extend(vectors.map(|v| simd.sum(v).to_bits()));
            out.push(simd.sum(simd.load_partial(&self.0[..11])).to_bits());
            for bits in (0..0x7C00_u16).step_by(77).flat_map(|b| [b, b | 0x8000]) {
                out.push(simd.half(bits.to_le_bytes()).to_bits());
            }
            let small = [0, 1, 15, 16, 127, 128, 200, 240, 255, 3, 0x5A, 0xA5, 7, 8, 9, 10];
            let [low, high] = simd.nibbles(&small);
            let bytes: Bytes = std::array::from_fn(|i| self.0[i].to_bits().to_le_bytes()[1]);
            let (all, x) = (simd.bytes(&bytes), [-127, 3, 127, -90]);
            let [low_bytes, high_bytes] = simd.split(all);
            let bias = S::BIAS * x.iter().map(|x| i32::from(*x)).sum::<i32>();
            let wide = simd.dot_bytes(simd.ints(bias), all, x);
            let narrow = simd.dot(simd.dot(simd.ints(-7), low_bytes, x), high_bytes, [127; 4]);
            let mut sums = simd.open_halves(narrow);
            for line in 0..MOST_HALVES {
                sums = simd.dot_halves(sums, if line % 2 == 0 { low_bytes } else { high_bytes }, x);
            }
            let many = simd.close_halves(sums, narrow);
            let greatest = simd.bytes(&[15; 4 * LANES]);
            let mut sums = simd.open_halves(wide);
            for _ in 0..MOST_HALVES {
                sums = simd.dot_halves(sums, greatest, [-127; 4]);
            }
            let most = simd.close_halves(sums, wide);
            let halves = std::array::from_fn(|i| bytes[i] & 0xBB);
            let product = simd.mul(simd.halves(&halves), simd.floats(wide));
            for v in [wide, narrow, many, most]
                .map(|v| simd.floats(v))
                .into_iter()
                .chain([product])
            {
                simd.store(v, &mut memory);
                out.extend(memory.map(f32::to_bits));
            }
            for v in [simd.unsigned(&small), simd.signed(&small), low, high] {
                simd.store(v, &mut memory);
                out.extend(memory.map(f32::to_bits));
            }
            out
        }
    }

    #[test]
    fn every_level_computes_the_same_bits() {
        for seed in 0..20 {
            let input = numbers(seed, 37 * LANES);
            let expected = Level::Portable.run(All(&input));
            let sums = &expected[37 + 16..];
            assert_eq!(sums[..16], sums[16..32], "sums of many vectors");
            for level in Level::available() {
                assert_eq!(level.run(All(&input)), expected, "{level:?}");
            }
        }
    }

    #[test]
    fn integers_become_numbers() {
        let simd = Portable;
        let bytes = std::array::from_fn(|i| [0xF0, 0x81, 0x7F, 0x2B][i % 4]);
        assert_eq!(simd.unsigned(&bytes)[..4], [240.0, 129.0, 127.0, 43.0]);
        assert_eq!(simd.signed(&bytes)[..4], [-16.0, -127.0, 127.0, 43.0]);
        let [low, high] = simd.nibbles(&bytes);
        assert_eq!(
            (&low[..4], &high[..4]),
            (&[0.0, 1.0, 15.0, 11.0][..], &[15.0, 8.0, 7.0, 2.0][..])
        );
    }

    #[test]
    fn bytes_are_multiplied() {
        let simd = Portable;
        let bytes: Bytes = std::array::from_fn(|i| [255, 0, 18, 127][i % 4]);
        let acc = simd.dot_bytes(simd.ints(5), bytes, [-127, 9, 10, 1]);
        assert_eq!(acc, [5 - 255 * 127 + 180 + 127; LANES]);
        let [low, high] = simd.split(bytes);
        assert_eq!((&low[..4], &high[..4]), (&[15, 0, 2, 15][..], &[15, 0, 1, 7][..]));
        assert_eq!(simd.dot(simd.ints(0), high, [1, 1, -3, 2]), [15 - 3 + 14; LANES]);
        let sums = simd.dot_halves(simd.open_halves(acc), high, [1, 1, -3, 2]);
        let sums = simd.dot_halves(sums, low, [1, 1, 1, 1]);
        assert_eq!(simd.close_halves(sums, acc), acc.map(|acc| acc + 26 + 32));
    }

    #[test]
    fn the_tree_adds_halves() {
        let lane: Lane = std::array::from_fn(|i| 1.0 + i as f32);
        assert_eq!(tree_sum(&lane), 136.0);
        // 2^24 + 1 is not representable: only an order in which the two big numbers cancel first keeps the 1.
        let mut lane = [0.0; LANES];
        (lane[0], lane[8], lane[1]) = (16_777_216.0, -16_777_216.0, 1.0);
        assert_eq!(tree_sum(&lane), 1.0);
    }
}
