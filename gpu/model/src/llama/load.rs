//! From a file to a device.

use engine::{Attention, Device, ModelSpec, PoolShape, layout_hash};

use super::{Layer, Linear, Llama, LoadError, PoolOptions, Scratch, Shape, Weights};
use crate::config::Config;
use crate::gguf::Gguf;
use crate::model::ModelFile;
use crate::sampler::Sampler;
use crate::weights::Loader;

impl<D: Device> Llama<D> {
    /// Loads every tensor of the model and allocates the pool.
    pub(crate) fn load(
        model: &ModelFile,
        file: &Gguf,
        mut device: D,
        pool: PoolOptions,
    ) -> Result<Self, LoadError> {
        let config = model.config();
        let mut loader = Loader::new(file, &mut device);
        let mut rope = config.rope.clone();
        rope.factors = loader.divisors("rope_freqs.weight", rope.dims / 2)?;
        let weights = weights(&mut loader, config)?;
        let fingerprint = format!("{} {}", numerics(config), loader.fingerprint());

        let shape = PoolShape {
            blocks: pool.blocks,
            block_tokens: pool.block_tokens,
            layers: config.layers,
            kv_heads: config.kv_heads,
            head_dim: config.head_dim,
        };
        let pool = device.allocate_pool(shape)?;
        let end_tokens = model.end_tokens().to_vec();
        let spec = ModelSpec {
            name: model.name().to_owned(),
            vocabulary: u32::try_from(config.vocabulary).unwrap_or(u32::MAX),
            context_tokens: config.context_tokens,
            layout_hash: layout_hash(&shape, &fingerprint, device.numerics()),
            end_tokens: end_tokens.clone(),
        };
        Ok(Self {
            device,
            spec,
            pool,
            weights,
            shape: Shape {
                attention: attention(config),
                rope,
                epsilon: config.rms_epsilon,
                vocabulary: config.vocabulary,
            },
            scratch: Scratch::default(),
            sampler: Sampler::new(end_tokens),
            interrupt: engine::Interrupt::default(),
        })
    }
}

/// What keys and values depend on besides the weights: the same weights under another of these are another model.
fn numerics(config: &Config) -> String {
    let c = config;
    format!("{} {} {} {:?}", c.architecture, c.heads, c.rms_epsilon, c.rope)
}

#[allow(clippy::cast_precision_loss, reason = "a head has few numbers")]
fn attention(config: &Config) -> Attention {
    Attention {
        layer: 0,
        heads: config.heads,
        kv_heads: config.kv_heads,
        head_dim: config.head_dim,
        scale: 1.0 / (config.head_dim as f32).sqrt(),
        window: None,
    }
}

fn weights<D: Device>(loader: &mut Loader<'_, D>, c: &Config) -> Result<Weights<D::Weight>, LoadError> {
    Ok(Weights {
        embedding: loader.matrix("token_embd.weight", c.vocabulary, c.width)?,
        layers: (0..c.layers)
            .map(|i| layer(loader, c, i))
            .collect::<Result<_, _>>()?,
        norm: loader.vector("output_norm.weight", c.width)?,
        head: loader.optional("output.weight", c.vocabulary, c.width)?,
    })
}

fn layer<D: Device>(
    loader: &mut Loader<'_, D>,
    c: &Config,
    index: usize,
) -> Result<Layer<D::Weight>, LoadError> {
    let name = |part: &str| format!("blk.{index}.{part}");
    let (q_width, kv_width) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
    let mut linear = |part: &str, rows: usize, columns: usize| -> Result<_, LoadError> {
        Ok(Linear {
            weight: loader.matrix(&name(&format!("{part}.weight")), rows, columns)?,
            bias: loader.optional(&name(&format!("{part}.bias")), 1, rows)?,
        })
    };
    let q = linear("attn_q", q_width, c.width)?;
    let k = linear("attn_k", kv_width, c.width)?;
    let v = linear("attn_v", kv_width, c.width)?;
    let output = linear("attn_output", c.width, q_width)?;
    Ok(Layer {
        q,
        k,
        v,
        output,
        attention_norm: loader.vector(&name("attn_norm.weight"), c.width)?,
        q_norm: loader.optional(&name("attn_q_norm.weight"), 1, c.head_dim)?,
        k_norm: loader.optional(&name("attn_k_norm.weight"), 1, c.head_dim)?,
        ffn_norm: loader.vector(&name("ffn_norm.weight"), c.width)?,
        gate: loader.matrix(&name("ffn_gate.weight"), c.ffn_width, c.width)?,
        up: loader.matrix(&name("ffn_up.weight"), c.ffn_width, c.width)?,
        down: loader.matrix(&name("ffn_down.weight"), c.width, c.ffn_width)?,
    })
}
