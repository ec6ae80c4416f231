//! A device that lets the logits of the last step be seen.

use std::sync::{Arc, Mutex, PoisonError};

use engine::{Attention, BackendError, Device, Gate, KvPool, PoolShape, Rope, Span, TensorView, Token};

/// The numbers that were read from the device last: the logits, one row a sampled sequence.
pub(crate) type Numbers = Arc<Mutex<Vec<f32>>>;

/// Passes everything on to `D`, and keeps what is read.
pub(crate) struct Tap<D> {
    pub(crate) device: D,
    pub(crate) read: Numbers,
}

impl<D: Device> Device for Tap<D> {
    type Weight = D::Weight;
    type Buffer = D::Buffer;

    fn numerics(&self) -> &'static str {
        self.device.numerics()
    }

    fn allocate_pool(&mut self, shape: PoolShape) -> Result<Arc<KvPool>, BackendError> {
        self.device.allocate_pool(shape)
    }

    fn load(&mut self, tensor: TensorView<'_>) -> Result<D::Weight, BackendError> {
        self.device.load(tensor)
    }

    fn embed(&mut self, table: &D::Weight, tokens: &[Token], scale: f32, out: &mut D::Buffer) {
        self.device.embed(table, tokens, scale, out);
    }

    fn rms_norm(&mut self, x: &D::Buffer, weight: &D::Weight, epsilon: f32, out: &mut D::Buffer) {
        self.device.rms_norm(x, weight, epsilon, out);
    }

    fn linear(&mut self, x: &D::Buffer, weight: &D::Weight, bias: Option<&D::Weight>, out: &mut D::Buffer) {
        self.device.linear(x, weight, bias, out);
    }

    fn rope(&mut self, x: &mut D::Buffer, head_dim: usize, spans: &[Span<'_>], rope: &Rope) {
        self.device.rope(x, head_dim, spans, rope);
    }

    fn store(&mut self, pool: &KvPool, layer: &Attention, spans: &[Span<'_>], k: &D::Buffer, v: &D::Buffer) {
        self.device.store(pool, layer, spans, k, v);
    }

    fn attend(
        &mut self,
        pool: &KvPool,
        layer: &Attention,
        spans: &[Span<'_>],
        q: &D::Buffer,
        out: &mut D::Buffer,
    ) {
        self.device.attend(pool, layer, spans, q, out);
    }

    fn gate(&mut self, gate: &mut D::Buffer, up: &D::Buffer, act: Gate) {
        self.device.gate(gate, up, act);
    }

    fn add(&mut self, x: &mut D::Buffer, y: &D::Buffer) {
        self.device.add(x, y);
    }

    fn select(&mut self, x: &D::Buffer, rows: &[usize], out: &mut D::Buffer) {
        self.device.select(x, rows, out);
    }

    fn read<'a>(&mut self, x: &'a mut D::Buffer) -> Result<&'a [f32], BackendError> {
        let numbers = self.device.read(x)?;
        let mut kept = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clear();
        kept.extend_from_slice(numbers);
        Ok(numbers)
    }
}
