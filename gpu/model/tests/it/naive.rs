//! A device as the definitions read: `f32`, plain loops, weights dequantised when loaded. It keeps keys and values itself, one row a
//! position of a block, because the pool's memory is only for code that may be `unsafe`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use engine::{
    Attention, BackendError, DType, Device, Gate, KvPool, PoolShape, Rope, Span, TensorView, Token,
};
use half::{bf16, f16};

/// Rows of numbers.
#[derive(Clone, Default)]
pub(crate) struct Matrix {
    width: usize,
    numbers: Vec<f32>,
}

impl Matrix {
    fn rows(&self) -> std::slice::ChunksExact<'_, f32> {
        self.numbers.chunks_exact(self.width)
    }

    fn row(&self, index: usize) -> &[f32] {
        &self.numbers[index * self.width..][..self.width]
    }
}

/// Layer, block, offset in the block, key-value head.
type Place = (usize, u32, usize, usize);

#[derive(Default)]
pub(crate) struct Naive {
    kv: HashMap<Place, (Vec<f32>, Vec<f32>)>,
    block_tokens: usize,
    /// What was read last.
    pub(crate) last: Arc<Mutex<Vec<f32>>>,
}

fn numbers(tensor: &TensorView<'_>) -> Result<Vec<f32>, BackendError> {
    let half = |b: &[u8], at: usize| f16::from_le_bytes([b[at], b[at + 1]]).to_f32();
    Ok(match tensor.dtype {
        DType::F32 => tensor
            .bytes
            .as_chunks()
            .0
            .iter()
            .map(|&b| f32::from_le_bytes(b))
            .collect(),
        DType::F16 => pairs(tensor.bytes, |b| f16::from_le_bytes(b).to_f32()),
        DType::Bf16 => pairs(tensor.bytes, |b| bf16::from_le_bytes(b).to_f32()),
        DType::Q8_0 => {
            let block = |b: &[u8]| -> Vec<f32> {
                b[2..]
                    .iter()
                    .map(|&q| half(b, 0) * f32::from(q.cast_signed()))
                    .collect()
            };
            tensor.bytes.chunks_exact(34).flat_map(block).collect()
        }
        DType::Q4_1 => {
            let block = |b: &[u8]| -> Vec<f32> {
                let nibbles = b[4..].iter().map(|q| q & 15).chain(b[4..].iter().map(|q| q >> 4));
                nibbles.map(|q| half(b, 0) * f32::from(q) + half(b, 2)).collect()
            };
            tensor.bytes.chunks_exact(20).flat_map(block).collect()
        }
        other => return Err(BackendError(format!("{}: no code for {other:?}", tensor.name))),
    })
}

fn pairs(bytes: &[u8], number: impl Fn([u8; 2]) -> f32) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&b| number(b)).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 16];
    for (a, b) in a.chunks(16).zip(b.chunks(16)) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * b;
        }
    }
    lanes.iter().sum()
}

impl Naive {
    fn place(&self, span: &Span<'_>, layer: usize, position: usize, head: usize) -> Place {
        (
            layer,
            span.blocks[position / self.block_tokens],
            position % self.block_tokens,
            head,
        )
    }

    /// Attention of one query head at `position`.
    fn attend_one(
        &self,
        span: &Span<'_>,
        a: &Attention,
        position: usize,
        head: usize,
        q: &[f32],
    ) -> Vec<f32> {
        let kv_head = head / (a.heads / a.kv_heads);
        let first = a
            .window
            .map_or(0, |window| (position + 1).saturating_sub(window as usize));
        let rows: Vec<_> = (first..=position)
            .map(|p| &self.kv[&self.place(span, a.layer, p, kv_head)])
            .collect();
        let scores: Vec<f32> = rows.iter().map(|(k, _)| dot(q, k) * a.scale).collect();
        let max = scores.iter().copied().fold(f32::MIN, f32::max);
        let weights: Vec<f32> = scores.iter().map(|s| (s - max).exp()).collect();
        let sum: f32 = weights.iter().sum();
        let value = |d: usize| rows.iter().zip(&weights).map(|((_, v), w)| v[d] * w).sum::<f32>() / sum;
        (0..a.head_dim).map(value).collect()
    }
}

impl Device for Naive {
    type Weight = Matrix;
    type Buffer = Matrix;

    fn numerics(&self) -> &'static str {
        "naive"
    }

    fn allocate_pool(&mut self, shape: PoolShape) -> Result<Arc<KvPool>, BackendError> {
        self.block_tokens = shape.block_tokens;
        KvPool::new(shape)
    }

    fn load(&mut self, tensor: TensorView<'_>) -> Result<Matrix, BackendError> {
        let matrix = Matrix {
            width: tensor.columns,
            numbers: numbers(&tensor)?,
        };
        assert_eq!(
            matrix.numbers.len(),
            tensor.rows * tensor.columns,
            "{}",
            tensor.name
        );
        Ok(matrix)
    }

    fn embed(&mut self, table: &Matrix, tokens: &[Token], scale: f32, out: &mut Matrix) {
        let rows = tokens
            .iter()
            .flat_map(|&t| table.row(t as usize))
            .map(|n| n * scale);
        *out = Matrix {
            width: table.width,
            numbers: rows.collect(),
        };
    }

    #[allow(clippy::cast_precision_loss)]
    fn rms_norm(&mut self, x: &Matrix, weight: &Matrix, epsilon: f32, out: &mut Matrix) {
        let group = |g: &[f32]| -> Vec<f32> {
            let scale = 1.0 / (dot(g, g) / g.len() as f32 + epsilon).sqrt();
            g.iter()
                .zip(&weight.numbers)
                .map(|(n, w)| n * scale * w)
                .collect()
        };
        let numbers = x.numbers.chunks_exact(weight.width).flat_map(group).collect();
        *out = Matrix {
            width: x.width,
            numbers,
        };
    }

    fn linear(&mut self, x: &Matrix, weight: &Matrix, bias: Option<&Matrix>, out: &mut Matrix) {
        let width = weight.numbers.len() / weight.width;
        let mut numbers = vec![0.0; x.numbers.len() / x.width * width];
        for (o, w) in weight.rows().enumerate() {
            let bias = bias.map_or(0.0, |b| b.numbers[o]);
            for (r, row) in x.rows().enumerate() {
                numbers[r * width + o] = dot(row, w) + bias;
            }
        }
        *out = Matrix { width, numbers };
    }

    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
    fn rope(&mut self, x: &mut Matrix, head_dim: usize, spans: &[Span<'_>], rope: &Rope) {
        for span in spans {
            for r in 0..span.rows {
                let position = f64::from(span.start) + r as f64;
                let start = (span.row + r) * x.width;
                for head in x.numbers[start..start + x.width].chunks_exact_mut(head_dim) {
                    for i in 0..rope.dims / 2 {
                        let factor = rope.factors.as_ref().map_or(1.0, |f| f64::from(f[i]));
                        let frequency =
                            f64::from(rope.base).powf(-2.0 * i as f64 / rope.dims as f64) / factor;
                        let (sin, cos) = (position * frequency).sin_cos();
                        let (sin, cos) = (sin as f32, cos as f32);
                        let (a, b) = if rope.interleaved {
                            (2 * i, 2 * i + 1)
                        } else {
                            (i, i + rope.dims / 2)
                        };
                        (head[a], head[b]) = (head[a] * cos - head[b] * sin, head[a] * sin + head[b] * cos);
                    }
                }
            }
        }
    }

    fn store(&mut self, _: &KvPool, a: &Attention, spans: &[Span<'_>], k: &Matrix, v: &Matrix) {
        for span in spans {
            for r in 0..span.rows {
                let heads = k
                    .row(span.row + r)
                    .chunks_exact(a.head_dim)
                    .zip(v.row(span.row + r).chunks_exact(a.head_dim));
                for (head, (k, v)) in heads.enumerate() {
                    let place = self.place(span, a.layer, span.start as usize + r, head);
                    self.kv.insert(place, (k.to_vec(), v.to_vec()));
                }
            }
        }
    }

    fn attend(&mut self, _: &KvPool, a: &Attention, spans: &[Span<'_>], q: &Matrix, out: &mut Matrix) {
        let mut numbers = Vec::new();
        for span in spans {
            for r in 0..span.rows {
                for (head, q) in q.row(span.row + r).chunks_exact(a.head_dim).enumerate() {
                    numbers.extend(self.attend_one(span, a, span.start as usize + r, head, q));
                }
            }
        }
        *out = Matrix {
            width: q.width,
            numbers,
        };
    }

    fn gate(&mut self, gate: &mut Matrix, up: &Matrix, act: Gate) {
        let act = |x: f32| match act {
            Gate::Silu => x / (1.0 + (-x).exp()),
            Gate::Gelu => {
                let inner = (2.0 / std::f32::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
                0.5 * x * (1.0 + inner.tanh())
            }
        };
        for (g, u) in gate.numbers.iter_mut().zip(&up.numbers) {
            *g = act(*g) * u;
        }
    }

    fn add(&mut self, x: &mut Matrix, y: &Matrix) {
        for (x, y) in x.numbers.iter_mut().zip(&y.numbers) {
            *x += y;
        }
    }

    fn select(&mut self, x: &Matrix, rows: &[usize], out: &mut Matrix) {
        let numbers = rows.iter().flat_map(|&r| x.row(r)).copied().collect();
        *out = Matrix {
            width: x.width,
            numbers,
        };
    }

    fn read<'a>(&mut self, x: &'a mut Matrix) -> Result<&'a [f32], BackendError> {
        (*self.last.lock().unwrap()).clone_from(&x.numbers);
        Ok(&x.numbers)
    }
}
