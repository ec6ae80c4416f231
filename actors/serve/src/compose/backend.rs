//! The device of a worker, with the model on it.

use std::num::NonZeroUsize;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use cpu::{Activations, CpuDevice, CpuOptions};
use engine::{Backend, Device, PoolShape};
use mock::{Latency, MockBackend, MockConfig, Verify};
use model::{ModelFile, PoolOptions};

use crate::config::{Config, WorkerDevice, WorkerNumerics};

/// The mock's KV of a position: the least that holds its pattern.
const MOCK_HEAD_DIM: usize = 2;

/// Puts the model on the configured device; and the numerics, which all workers of a gateway must share.
///
/// # Errors
/// When the device is not here, the pool does not fit, or the model cannot be loaded.
pub(super) fn build(config: &Config, model: &ModelFile) -> Result<(Box<dyn Backend>, String)> {
    let shape = shape(config, model)?;
    match config.worker.device {
        WorkerDevice::Cpu => {
            let threads = NonZeroUsize::new(config.worker.threads);
            let device = CpuDevice::new(&CpuOptions {
                threads,
                level: None,
                activations: match config.worker.numerics {
                    WorkerNumerics::Fast => Activations::Int8,
                    WorkerNumerics::Exact => Activations::F32,
                },
            })?;
            let numerics = device.numerics().to_owned();
            let pool = PoolOptions {
                blocks: shape.blocks,
                block_tokens: shape.block_tokens,
            };
            let backend = model
                .backend(device, pool)
                .context("the model cannot be loaded")?;
            Ok((Box::new(backend), numerics))
        }
        WorkerDevice::Mock => {
            let mock = MockBackend::new(mock_config(config, model, shape), Arc::new(std::thread::sleep))
                .context("the mock cannot be made")?;
            tracing::warn!("worker.device is mock: answers are made up, and take as long as [mock] says");
            Ok((Box::new(mock), "mock".to_owned()))
        }
    }
}

fn mock_config(config: &Config, model: &ModelFile, shape: PoolShape) -> MockConfig {
    MockConfig {
        name: model.name().to_owned(),
        shape,
        vocabulary: u32::try_from(model.config().vocabulary).unwrap_or(u32::MAX),
        context_tokens: model.config().context_tokens,
        latency: Latency {
            step_micros: config.mock.step_us,
            prefill_token_micros: config.mock.prompt_token_us,
            decode_micros: config.mock.answer_token_us,
        },
        verify: Verify::Latest,
        ..MockConfig::default()
    }
}

/// The pool: blocks that fit the configured memory; at least enough for one whole context, or the model could not be served as it is.
///
/// # Errors
/// When that is less than one context.
pub(super) fn shape(config: &Config, model: &ModelFile) -> Result<PoolShape> {
    let model = model.config();
    let (layers, kv_heads, head_dim) = match config.worker.device {
        WorkerDevice::Cpu => (model.layers, model.kv_heads, model.head_dim),
        WorkerDevice::Mock => (1, 1, MOCK_HEAD_DIM),
    };
    let block = PoolShape {
        blocks: 1,
        block_tokens: config.worker.block_tokens,
        layers,
        kv_heads,
        head_dim,
    };
    let block_bytes = (block.block_len() * size_of::<f32>()) as u64;
    let blocks = config.worker.pool_mib.saturating_mul(1 << 20) / block_bytes.max(1);
    let context = u64::from(model.context_tokens).div_ceil(config.worker.block_tokens as u64);
    if blocks <= context {
        bail!(
            "worker.pool_mib is {}: that is {blocks} blocks, and one sequence of the model's context needs {context}; \
             it must be at least {}",
            config.worker.pool_mib,
            ((context + 1) * block_bytes).div_ceil(1 << 20)
        );
    }
    let blocks = u32::try_from(blocks).with_context(|| {
        let pool_mib = config.worker.pool_mib;
        format!(
            "worker.pool_mib is {pool_mib}: that is {blocks} blocks, and no pool has more than {}",
            u32::MAX
        )
    })?;
    Ok(PoolShape { blocks, ..block })
}
