//! The CPU as a device.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::available_parallelism;

use engine::{Attention, BackendError, Device, Gate, KvPool, PoolShape, Rope, Span, TensorView, Token};

use crate::matrix::Matrix;
use crate::memory::Arena;
use crate::ops::{self, Exec, RopeTables};
use crate::simd::Level;
use crate::team::Team;
use crate::weight::Weight;

/// What products with quantised weights make of activations. Weights in floating point are multiplied in `f32` either way.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub enum Activations {
    /// Rounded to eight bits in blocks of 32, and multiplied as integers: several times as fast.
    #[default]
    Int8,
    /// Left as they are.
    F32,
}

/// How to use the CPU.
#[derive(Clone, Debug, Default)]
pub struct CpuOptions {
    /// Threads that compute, the caller included. Default: as many as the process may use cores.
    pub threads: Option<NonZeroUsize>,
    /// Instructions to use. Default: the fastest this machine has.
    pub level: Option<Level>,
    /// What is multiplied. Devices that differ in it give different results.
    pub activations: Activations,
}

/// The CPU. Calls are synchronous and run on the caller's thread and a team of helpers, which ends with the device.
///
/// Results depend neither on the number of threads nor on the instructions in use.
pub struct CpuDevice {
    exec: Exec,
    tables: RopeTables,
    scratch: ops::Scratch,
    activations: Activations,
    /// Of the weights.
    arena: Arena,
}

impl CpuDevice {
    /// Starts the team.
    ///
    /// # Errors
    /// When this machine lacks the instructions asked for, or no threads can be had.
    pub fn new(options: &CpuOptions) -> Result<Self, BackendError> {
        let level = options.level.unwrap_or_else(Level::best);
        if !Level::available().contains(&level) {
            let available = Level::available();
            return Err(BackendError(format!(
                "this CPU has no {level:?} instructions, only {available:?}"
            )));
        }
        let threads = options
            .threads
            .or_else(|| available_parallelism().ok())
            .unwrap_or(NonZeroUsize::MIN);
        let team = Team::new(threads)
            .map_err(|e| BackendError(format!("cannot start {threads} threads to compute with: {e}")))?;
        Ok(Self {
            exec: Exec { team, level },
            tables: RopeTables::default(),
            scratch: ops::Scratch::default(),
            activations: options.activations,
            arena: Arena::default(),
        })
    }

    /// The instructions in use.
    #[must_use]
    pub fn level(&self) -> Level {
        self.exec.level
    }
}

/// The operations assert that shapes agree: a mismatch is a mistake in the model's code, not in anyone's input.
impl Device for CpuDevice {
    type Weight = Weight;
    type Buffer = Matrix;

    fn numerics(&self) -> &'static str {
        match self.activations {
            Activations::Int8 => "q8b32",
            Activations::F32 => "f32-fma16",
        }
    }

    fn allocate_pool(&mut self, shape: PoolShape) -> Result<Arc<KvPool>, BackendError> {
        KvPool::new(shape)
    }

    fn load(&mut self, tensor: TensorView<'_>) -> Result<Weight, BackendError> {
        Weight::new(&tensor, self.activations, &mut self.arena)
    }

    fn embed(&mut self, table: &Weight, tokens: &[Token], scale: f32, out: &mut Matrix) {
        ops::embed(&mut self.exec, table, tokens, scale, out);
    }

    fn rms_norm(&mut self, x: &Matrix, weight: &Weight, epsilon: f32, out: &mut Matrix) {
        ops::rms_norm(&mut self.exec, x, weight.vector(), epsilon, out);
    }

    fn linear(&mut self, x: &Matrix, weight: &Weight, bias: Option<&Weight>, out: &mut Matrix) {
        let bias = bias.map(Weight::vector);
        ops::linear(&mut self.exec, x, weight, bias, &mut self.scratch, out);
    }

    fn rope(&mut self, x: &mut Matrix, head_dim: usize, spans: &[Span<'_>], rope: &Rope) {
        ops::rope(&mut self.exec, &mut self.tables, x, head_dim, spans, rope);
    }

    fn store(&mut self, pool: &KvPool, attention: &Attention, spans: &[Span<'_>], k: &Matrix, v: &Matrix) {
        ops::store(pool, attention, spans, k, v);
    }

    fn attend(
        &mut self,
        pool: &KvPool,
        attention: &Attention,
        spans: &[Span<'_>],
        q: &Matrix,
        out: &mut Matrix,
    ) {
        ops::attend(&mut self.exec, pool, attention, spans, q, out);
    }

    fn gate(&mut self, gate: &mut Matrix, up: &Matrix, act: Gate) {
        ops::gate(&mut self.exec, gate, up, act);
    }

    fn add(&mut self, x: &mut Matrix, y: &Matrix) {
        ops::add(&mut self.exec, x, y);
    }

    fn select(&mut self, x: &Matrix, rows: &[usize], out: &mut Matrix) {
        ops::select(x, rows, out);
    }

    fn read<'a>(&mut self, x: &'a mut Matrix) -> Result<&'a [f32], BackendError> {
        Ok(x.numbers())
    }
}
