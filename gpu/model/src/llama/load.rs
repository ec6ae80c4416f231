//! From a file to a device.

use engine::{Attention, Device, ModelSpec, PoolShape, Rope, layout_hash};

use super::{Layer, Linear, Llama, LoadError, PoolOptions, Reach, Scratch, Shape, Weights};
use crate::config::Config;
use crate::model::ModelFile;
use crate::sampler::Sampler;
use crate::weights::{Loader, Source};

impl<D: Device> Llama<D> {
    /// Loads every tensor of the model and allocates the pool.
    pub(crate) fn load(
        model: &ModelFile,
        source: &Source,
        mut device: D,
        pool: PoolOptions,
    ) -> Result<Self, LoadError> {
        let config = model.config();
        let mut loader = Loader::new(source, &mut device);
        let mut rope = config.rope.clone();
        if let Some(divisors) = loader.divisors("rope_freqs.weight", rope.dims / 2)? {
            rope.factors = Some(divisors);
        }
        let tied = config.tied.unwrap_or_else(|| !loader.has(HEAD));
        let weights = weights(&mut loader, config, tied)?;
        let fingerprint = format!("{} {}", numerics(config), loader.fingerprint(tied)?);

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
                far: reach(config, None, rope),
                near: config
                    .window
                    .as_ref()
                    .map(|w| reach(config, Some(w.tokens), w.rope.clone())),
                embedding_scale: config.embedding_scale,
                gate: config.gate,
                epsilon: config.rms_epsilon,
                vocabulary: config.vocabulary,
            },
            scratch: Scratch::default(),
            sampler: Sampler::new(end_tokens),
            interrupt: engine::Interrupt::default(),
        })
    }
}

/// The output weights.
const HEAD: &str = "output.weight";

/// What keys and values depend on besides the weights: the same weights under another of these are another model.
fn numerics(config: &Config) -> String {
    let c = config;
    format!(
        "{} {} {} {:?} {:?} {} {} {:?}",
        c.architecture,
        c.heads,
        c.rms_epsilon,
        c.rope,
        c.window,
        c.attention_scale,
        c.embedding_scale,
        c.gate
    )
}

fn reach(config: &Config, window: Option<u32>, rope: Rope) -> Reach {
    let attention = Attention {
        layer: 0,
        heads: config.heads,
        kv_heads: config.kv_heads,
        head_dim: config.head_dim,
        scale: config.attention_scale,
        window,
    };
    Reach { attention, rope }
}

fn weights<D: Device>(
    loader: &mut Loader<'_, D>,
    c: &Config,
    tied: bool,
) -> Result<Weights<D::Weight>, LoadError> {
    Ok(Weights {
        embedding: loader.matrix("token_embd.weight", c.vocabulary, c.width)?,
        layers: (0..c.layers)
            .map(|i| layer(loader, c, i))
            .collect::<Result<_, _>>()?,
        norm: loader.norm("output_norm.weight", c.width, c.norms.less_one)?,
        head: if tied {
            None
        } else {
            Some(loader.matrix(HEAD, c.vocabulary, c.width)?)
        },
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
    let mut norm =
        |part: &str, len: usize| loader.norm(&name(&format!("{part}.weight")), len, c.norms.less_one);
    let attention_norm = norm("attn_norm", c.width)?;
    let ffn_norm = norm("ffn_norm", c.width)?;
    let (attended_norm, fed_norm) = if c.norms.outputs {
        (
            Some(norm("post_attention_norm", c.width)?),
            Some(norm("post_ffw_norm", c.width)?),
        )
    } else {
        (None, None)
    };
    let (q_norm, k_norm) = if c.norms.heads {
        (
            Some(norm("attn_q_norm", c.head_dim)?),
            Some(norm("attn_k_norm", c.head_dim)?),
        )
    } else {
        let mut optional = |part: &str| loader.optional(&name(part), 1, c.head_dim);
        (optional("attn_q_norm.weight")?, optional("attn_k_norm.weight")?)
    };
    Ok(Layer {
        near: c
            .window
            .as_ref()
            .is_some_and(|w| w.layers.get(index) == Some(&true)),
        q,
        k,
        v,
        output,
        attention_norm,
        q_norm,
        k_norm,
        attended_norm,
        ffn_norm,
        gate: loader.matrix(&name("ffn_gate.weight"), c.ffn_width, c.width)?,
        up: loader.matrix(&name("ffn_up.weight"), c.ffn_width, c.width)?,
        down: loader.matrix(&name("ffn_down.weight"), c.width, c.ffn_width)?,
        fed_norm,
    })
}
