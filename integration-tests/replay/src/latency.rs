//! How long a step takes: the formulas that DistServe fitted to its measurements on A100 80 GB SXM, with its figures
//! (`profiler-a100-80g.distserve.json` of the repository LLMServe/DistServe, simulator).
//!
//! ```text
//!   prompts    a + b · Σ n + c · Σ n²                 milliseconds, for prompts of n tokens in one batch
//!   answers    a + b · Σ context + c · sequences      with other figures from a size of batch on
//! ```
//!
//! A chunk that begins at position `s` has the part of the square that is its own, `(s + n)² − s²`. A step that does both
//! pays the greater base once. The formulas are used beyond the context of the models that were measured, as traces have
//! prompts of 126,000 tokens. How far to trust absolute figures: Splitwise measured 661 ms for a prompt of 4,096 tokens and
//! 46 ms a token with Llama 2 70B on eight of the same cards, older software, where the 66 billion parameters here take 519
//! and 24. Comparisons of policies are what this is for.

/// Microseconds of a millisecond.
const MS: f64 = 1_000.0;

/// The figures of one model on one kind of worker. All in milliseconds.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Latency {
    /// Of prompts: base, per token, per token squared.
    pub prefill: [f64; 3],
    /// Of answers in small batches: base, per token of context, per sequence.
    pub decode_small: [f64; 3],
    /// The same in large ones.
    pub decode_large: [f64; 3],
    /// Sequences from which a batch is large.
    pub large: u32,
}

/// What a step has to do.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Batch {
    /// Of each prompt: position of the chunk, and its length.
    pub prompts: Vec<(u32, u32)>,
    /// Sequences that get one more token each.
    pub answers: u32,
    /// Their positions in all.
    pub context: u64,
}

impl Batch {
    /// Tokens of prompts.
    #[must_use]
    pub fn prompt_tokens(&self) -> u32 {
        self.prompts.iter().map(|(_, tokens)| tokens).sum()
    }
}

impl Latency {
    /// How long a step takes, in microseconds.
    #[must_use]
    pub fn step_us(&self, batch: &Batch) -> u64 {
        let square = |n: u32| f64::from(n) * f64::from(n);
        let (mut base, mut ms) = (0.0_f64, 0.0);
        if !batch.prompts.is_empty() {
            let [a, b, c] = self.prefill;
            base = a;
            let chunk =
                |(start, n): &(u32, u32)| b * f64::from(*n) + c * (square(start + n) - square(*start));
            ms += batch.prompts.iter().map(chunk).sum::<f64>();
        }
        if batch.answers > 0 {
            let large = batch.answers >= self.large;
            let [a, b, c] = if large {
                self.decode_large
            } else {
                self.decode_small
            };
            base = base.max(a);
            ms += b * real(batch.context) + c * f64::from(batch.answers);
        }
        whole((base + ms) * MS)
    }
}

/// A model on a worker of so many cards.
#[derive(Copy, Clone, Eq, PartialEq, Debug, clap::ValueEnum)]
pub enum Model {
    /// 13 billion parameters on four A100: OPT-13B's figures.
    #[value(name = "13b-4xa100")]
    M13b,
    /// 66 billion parameters on eight A100: OPT-66B's figures.
    #[value(name = "66b-8xa100")]
    M66b,
}

impl Model {
    /// How fast it is.
    #[must_use]
    pub fn latency(self) -> Latency {
        match self {
            Self::M13b => Latency {
                prefill: [12.062_297, 0.038_081_401, 5.226_249_7e-7],
                decode_small: [10.256_232, 1.878_670_2e-4, 0.032_692_736],
                decode_large: [10.483_515, 1.712_088_9e-4, 0.045_666_485],
                large: 95,
            },
            Self::M66b => Latency {
                prefill: [25.490_662, 0.106_591_78, 3.391_050_3e-6],
                decode_small: [23.155_111, 2.269_148_8e-4, 0.048_006_384],
                decode_large: [21.717_728, 3.758_089_7e-4, 0.089_786_142],
                large: 95,
            },
        }
    }

    /// Bytes of KV a token: 40 and 64 layers, K and V of eight heads of 128 numbers of two bytes. (OPT itself has as many KV heads as
    /// heads; models of today share them.)
    #[must_use]
    pub fn kv_bytes(self) -> u64 {
        match self {
            Self::M13b => 40 * 2 * 8 * 128 * 2,
            Self::M66b => 64 * 2 * 8 * 128 * 2,
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "positions are far below 2^53")]
fn real(n: u64) -> f64 {
    n as f64
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a step takes some time, and less than an age"
)]
fn whole(us: f64) -> u64 {
    us.max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::{Batch, Model};

    fn prompt(chunks: &[(u32, u32)]) -> u64 {
        let batch = Batch {
            prompts: chunks.to_vec(),
            ..Batch::default()
        };
        Model::M13b.latency().step_us(&batch)
    }

    #[test]
    fn the_formulas_are_those_published() {
        // 12.062 + 0.0380814 · 12,000 + 5.22625e-7 · 144e6
        assert_eq!(prompt(&[(0, 12_000)]) / 1_000, 544);
        let answers = Batch {
            answers: 10,
            context: 70_000,
            ..Batch::default()
        };
        // 10.256 + 1.87867e-4 · 70,000 + 0.0326927 · 10
        assert_eq!(Model::M13b.latency().step_us(&answers) / 100, 237);
        let both = Batch {
            prompts: vec![(0, 512)],
            ..answers
        };
        // The greater base once, and the rest of both: 12.062 + 19.635 + 13.478
        assert_eq!(Model::M13b.latency().step_us(&both) / 100, 451);
    }

    #[test]
    fn chunks_take_what_the_whole_takes_and_a_base_each() {
        let whole = prompt(&[(0, 8_000)]);
        let chunks = prompt(&[(0, 5_000)]) + prompt(&[(5_000, 3_000)]);
        assert_eq!((chunks - whole).div_ceil(100), 121);
    }
}
