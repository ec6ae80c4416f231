//! Changes of bytes, from a number: the same number, the same changes.

/// A small generator; what it is seeded with names the change.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// Below `n`; 0 for 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n.max(1) as u64).unwrap()
    }
}

/// Numbers that parsers trip over.
const EXTREMES: [u64; 8] = [0, 1, 0x7f, 0xff, 0xffff, 0x7fff_ffff, u32::MAX as u64, u64::MAX];

/// `bytes` with a few changes; some put a piece of `other` in.
pub(crate) fn change(bytes: &[u8], other: &[u8], seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut out = bytes.to_vec();
    for _ in 0..=rng.below(4) {
        one(&mut out, other, &mut rng);
    }
    out
}

fn one(out: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    let at = rng.below(out.len());
    let len = 1 + rng.below(16).min(out.len().saturating_sub(at + 1));
    match rng.below(8) {
        0 => out.truncate(at),
        1 if !out.is_empty() => out[at] ^= 1 << rng.below(8),
        2 if !out.is_empty() => out[at] = u8::try_from(rng.below(256)).unwrap(),
        3 if !out.is_empty() => drop(out.drain(at..at + len)),
        4 if !out.is_empty() => {
            let piece = out[at..at + len].to_vec();
            out.splice(at..at, piece);
        }
        5 => {
            let from = rng.below(other.len());
            let to = (from + 1 + rng.below(32)).min(other.len());
            out.splice(at..at, other[from..to].iter().copied());
        }
        _ => {
            let number = EXTREMES[rng.below(EXTREMES.len())].to_le_bytes();
            let width = [1, 2, 4, 8][rng.below(4)].min(out.len() - at.min(out.len()));
            out[at..at + width].copy_from_slice(&number[..width]);
        }
    }
}
