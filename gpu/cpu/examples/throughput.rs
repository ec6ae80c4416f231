//! Tokens a second of a layer stack of SmolLM2-135M's shape with random Q4_1 weights: what the device can do, without a model. For
//! every level of instructions, with activations rounded and not, beside the floor: what reading the weights once would take.
//!
//! `cargo run --release -p innkeeper-cpu --example throughput [threads]`

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cpu::{Activations, CpuDevice, CpuOptions, Level, Matrix, Weight};
use engine::{
    Attention, BackendError, BlockIndex, DType, Device, Gate, KvPool, PoolShape, Rope, Span, TensorView,
};

const LAYERS: usize = 30;
const WIDTH: usize = 576;
const HEADS: usize = 9;
const KV_HEADS: usize = 3;
const HEAD_DIM: usize = 64;
const INNER: usize = 1536;
const VOCABULARY: usize = 49_152;
const BLOCK_TOKENS: usize = 16;
/// Positions already in the cache when decoding.
const PAST: u32 = 256;
/// Each measurement goes on for about this long.
const MEASURE: Duration = Duration::from_millis(1_000);
/// Read to learn how fast memory is; far more than any cache holds.
const READ_BYTES: usize = 256 << 20;

struct Stack {
    device: CpuDevice,
    pool: Arc<KvPool>,
    norm: Weight,
    /// Query, key, value, output, gate, up, down of every layer.
    layers: Vec<[Weight; 7]>,
    head: Weight,
    buffers: [Matrix; 8],
}

/// Outputs and inputs of the matrices of a layer.
const SHAPES: [(usize, usize); 7] = [
    (WIDTH, WIDTH),
    (KV_HEADS * HEAD_DIM, WIDTH),
    (KV_HEADS * HEAD_DIM, WIDTH),
    (WIDTH, WIDTH),
    (INNER, WIDTH),
    (INNER, WIDTH),
    (WIDTH, INNER),
];

/// Bytes of all weights, each of which a step reads once.
fn weight_bytes() -> usize {
    let bytes = |dtype: DType, numbers: usize| numbers / dtype.block().0 * dtype.block().1;
    let layer: usize = SHAPES
        .iter()
        .map(|(rows, columns)| bytes(DType::Q4_1, rows * columns))
        .sum();
    LAYERS * layer + bytes(DType::Q8_0, VOCABULARY * WIDTH)
}

/// Bytes a second that all threads together read from memory: the best of some tries.
fn bandwidth(threads: usize) -> f64 {
    let data = vec![1_u64; READ_BYTES / size_of::<u64>()];
    let mut best = 0.0_f64;
    for _ in 0..5 {
        let begin = Instant::now();
        std::thread::scope(|scope| {
            for part in data.chunks(data.len().div_ceil(threads)) {
                scope.spawn(move || {
                    std::hint::black_box(part.iter().fold(0_u64, |sum, n| sum.wrapping_add(*n)))
                });
            }
        });
        best = best.max(READ_BYTES as f64 / begin.elapsed().as_secs_f64());
    }
    best
}

fn weight(device: &mut CpuDevice, dtype: DType, rows: usize, columns: usize) -> Result<Weight, BackendError> {
    let block = match dtype {
        DType::F32 => 0_u32.to_le_bytes().repeat(32),
        DType::Q8_0 => [&[0, 0x20][..], &[3; 32]].concat(),
        _ => [&[0, 0x20, 0, 0x94][..], &[0x2B; 16]].concat(),
    };
    let bytes = block.repeat(rows * columns / 32);
    device.load(TensorView {
        name: "random",
        dtype,
        rows,
        columns,
        bytes: &bytes,
    })
}

impl Stack {
    fn new(options: &CpuOptions) -> Result<Self, BackendError> {
        let mut device = CpuDevice::new(options)?;
        let shape = PoolShape {
            blocks: 1024,
            block_tokens: BLOCK_TOKENS,
            layers: LAYERS,
            kv_heads: KV_HEADS,
            head_dim: HEAD_DIM,
        };
        let pool = device.allocate_pool(shape)?;
        let norm = weight(&mut device, DType::F32, 1, WIDTH)?;
        let head = weight(&mut device, DType::Q8_0, VOCABULARY, WIDTH)?;
        let mut layers = Vec::new();
        for _ in 0..LAYERS {
            let mut layer = Vec::new();
            for (rows, columns) in SHAPES {
                layer.push(weight(&mut device, DType::Q4_1, rows, columns)?);
            }
            layers.extend(<[Weight; 7]>::try_from(layer).ok());
        }
        Ok(Self {
            device,
            pool,
            norm,
            layers,
            head,
            buffers: Default::default(),
        })
    }

    /// One step; logits for the last row of every span.
    fn step(&mut self, tokens: &[u32], spans: &[Span<'_>]) -> Result<(), BackendError> {
        let Self {
            device,
            pool,
            norm,
            layers,
            head,
            buffers,
        } = self;
        let [x, h, q, k, v, a, g, u] = buffers;
        let rope = Rope {
            base: 1e5,
            dims: HEAD_DIM,
            interleaved: true,
            factors: None,
        };
        device.embed(head, tokens, 1.0, x);
        for (layer, [wq, wk, wv, wo, wg, wu, wd]) in layers.iter().enumerate() {
            let attention = Attention {
                layer,
                heads: HEADS,
                kv_heads: KV_HEADS,
                head_dim: HEAD_DIM,
                scale: 0.125,
                window: None,
            };
            device.rms_norm(x, norm, 1e-5, h);
            device.linear(h, wq, None, q);
            device.linear(h, wk, None, k);
            device.linear(h, wv, None, v);
            device.rope(q, HEAD_DIM, spans, &rope);
            device.rope(k, HEAD_DIM, spans, &rope);
            device.store(pool, &attention, spans, k, v);
            device.attend(pool, &attention, spans, q, a);
            device.linear(a, wo, None, h);
            device.add(x, h);
            device.rms_norm(x, norm, 1e-5, h);
            device.linear(h, wg, None, g);
            device.linear(h, wu, None, u);
            device.gate(g, u, Gate::Silu);
            device.linear(g, wd, None, h);
            device.add(x, h);
        }
        let last: Vec<usize> = spans.iter().map(|s| s.row + s.rows - 1).collect();
        device.select(x, &last, h);
        device.linear(h, head, None, a);
        device.read(a).map(|_| ())
    }

    fn measure(&mut self, what: &str, sequences: usize, rows: usize, start: u32) -> Result<(), BackendError> {
        let tokens: Vec<u32> = (1_u32..).take(sequences * rows).collect();
        let blocks: Vec<BlockIndex> = (0..1024).collect();
        let each = (start as usize + rows).div_ceil(BLOCK_TOKENS);
        let spans: Vec<Span<'_>> = (0..sequences)
            .map(|i| Span {
                row: i * rows,
                rows,
                start,
                blocks: &blocks[i * each..(i + 1) * each],
            })
            .collect();
        self.step(&tokens, &spans)?;
        let (begin, mut steps, mut best) = (Instant::now(), 0_u32, Duration::MAX);
        while begin.elapsed() < MEASURE {
            let step = Instant::now();
            self.step(&tokens, &spans)?;
            best = best.min(step.elapsed());
            steps += 1;
        }
        let mean = begin.elapsed().as_secs_f64() / f64::from(steps);
        let tokens = tokens.len() as f64;
        println!(
            "{what}: {:.0} tokens/s (best {:.0})",
            tokens / mean,
            tokens / best.as_secs_f64()
        );
        Ok(())
    }
}

fn main() -> Result<(), BackendError> {
    let threads = std::env::args()
        .nth(1)
        .and_then(|n| n.parse::<NonZeroUsize>().ok());
    let count = threads
        .or_else(|| std::thread::available_parallelism().ok())
        .map_or(1, NonZeroUsize::get);
    let (bytes, bandwidth) = (weight_bytes() as f64, bandwidth(count));
    println!(
        "{count} threads; {:.1} GB/s read; {:.0} MB of weights: at most {:.0} steps/s",
        bandwidth / 1e9,
        bytes / 1e6,
        bandwidth / bytes
    );
    for level in Level::available().into_iter().rev() {
        for activations in [Activations::F32, Activations::Int8] {
            let mut stack = Stack::new(&CpuOptions {
                threads,
                level: Some(level),
                activations,
            })?;
            println!("{activations:?}, {level:?}");
            stack.measure("  decode, batch 1", 1, 1, PAST)?;
            if level == Level::best() {
                for batch in [4, 16, 32] {
                    stack.measure(&format!("  decode, batch {batch}"), batch, 1, PAST)?;
                }
                stack.measure("  decode, batch 1, 1,500 tokens before", 1, 1, 1_500)?;
                stack.measure("  prefill of 512", 1, 512, 0)?;
            } else {
                stack.measure("  prefill of 32", 1, 32, 0)?;
            }
        }
    }
    Ok(())
}
