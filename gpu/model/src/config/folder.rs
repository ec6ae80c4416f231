//! From `config.json`.

use engine::{Gate, Rope};

use super::{
    Config, ConfigError, GEMMA_LOCAL_BASE, Norms, Window, attention_scale, embedding_scale,
    every_sixth_looks_far, extent, scaling, unsupported,
};
use crate::folder::{Fields, Folder, FolderError};

/// What is computed differently with these, and this program has no code for.
const NOT_SERVED: [&str; 4] = [
    "quantization_config",
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "partial_rotary_factor",
];

impl Config {
    /// Reads the shape from a folder's `config.json`.
    ///
    /// # Errors
    /// When something is missing, impossible, or of a model that is not supported.
    pub fn from_folder(folder: &Folder) -> Result<Self, ConfigError> {
        let fields = folder.config();
        let kind = fields.text("model_type")?;
        let architecture = match kind {
            "llama" | "mistral" => "llama",
            "qwen2" | "qwen3" => kind,
            "gemma3_text" => "gemma3",
            other => {
                return unsupported(format!(
                    "config.json: model type `{other}` is not supported; supported are llama, mistral, qwen2, qwen3, gemma3_text"
                ));
            }
        };
        if let Some(key) = NOT_SERVED.into_iter().find(|key| fields.get(key).is_some()) {
            return unsupported(format!("config.json: `{key}` is not supported"));
        }
        let gemma = architecture == "gemma3";
        let size = |key: &str| extent(key, fields.unsigned(key)?);
        let size_or = |key: &str, other: usize| extent(key, fields.unsigned_or(key, other as u64)?);
        let (width, heads) = (size("hidden_size")?, size("num_attention_heads")?);
        // The others have a size that does not follow from these.
        let head_dim = match kind {
            "llama" | "mistral" | "qwen2" => size_or("head_dim", width / heads)?,
            _ => size("head_dim")?,
        };
        let layers = size("num_hidden_layers")?;
        let rope = rope(fields, "full_attention", head_dim)?;
        let config = Self {
            layers,
            width,
            heads,
            kv_heads: if kind == "llama" {
                size_or("num_key_value_heads", heads)?
            } else {
                size("num_key_value_heads")?
            },
            head_dim,
            ffn_width: size("intermediate_size")?,
            vocabulary: size("vocab_size")?,
            context_tokens: u32::try_from(size("max_position_embeddings")?).unwrap_or(u32::MAX),
            rms_epsilon: single(fields.float("rms_norm_eps")?),
            window: window(fields, kind, layers, &rope)?,
            rope,
            attention_scale: attention_scale(size_or("query_pre_attn_scalar", head_dim)?),
            embedding_scale: if gemma { embedding_scale(width) } else { 1.0 },
            gate: gate(fields, gemma)?,
            norms: Norms {
                heads: matches!(architecture, "qwen3" | "gemma3"),
                outputs: gemma,
                less_one: gemma,
            },
            tied: fields.flag("tie_word_embeddings")?.or(gemma.then_some(true)),
            architecture: architecture.to_owned(),
        };
        config.consistent()?;
        has_embedding(folder, &config)?;
        Ok(config)
    }
}

/// A vocabulary is as large as the files have embeddings: what is made for every token of it is bounded by that.
fn has_embedding(folder: &Folder, config: &Config) -> Result<(), ConfigError> {
    const NAME: &str = "token_embd.weight";
    let wrong = |what: String| {
        let name = folder.name(NAME).unwrap_or_else(|| NAME.to_owned());
        Err(FolderError::Tensor { name, what }.into())
    };
    let (rows, columns) = (config.vocabulary, config.width);
    match folder.tensor(NAME).map(|place| &place.extent.dims[..]) {
        None => wrong("is missing".to_owned()),
        Some(dims) if *dims == [rows, columns] => Ok(()),
        Some(dims) => wrong(format!(
            "has dimensions {dims:?}, where {rows} × {columns} are needed"
        )),
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "rounding to single precision is meant"
)]
fn single(number: f64) -> f32 {
    number as f32
}

fn gate(fields: &Fields, gemma: bool) -> Result<Gate, ConfigError> {
    // Gemma's first files have both.
    let key = if fields.get("hidden_activation").is_some() {
        "hidden_activation"
    } else {
        "hidden_act"
    };
    match (fields.text(key)?, gemma) {
        ("silu", false) => Ok(Gate::Silu),
        ("gelu_pytorch_tanh", true) => Ok(Gate::Gelu),
        (other, _) => unsupported(format!("config.json: `{key}` `{other}` is not supported")),
    }
}

/// The position embedding of layers of a kind. Newer files say of all, or of each kind, what older ones say in several places.
fn rope(fields: &Fields, layers: &str, dims: usize) -> Result<Rope, ConfigError> {
    let local = layers == "sliding_attention";
    let parameters = fields.below("rope_parameters")?;
    let of_kind = parameters
        .as_ref()
        .map(|p| p.below(layers))
        .transpose()?
        .flatten();
    let (base, scaling) = match of_kind.or(parameters) {
        Some(parameters) => (parameters.float("rope_theta")?, Some(parameters)),
        None if local && fields.says("rope_local_base_freq") => (fields.float("rope_local_base_freq")?, None),
        None if local => (f64::from(GEMMA_LOCAL_BASE), None),
        None => (
            fields.float_or("rope_theta", 10_000.0)?,
            fields.below("rope_scaling")?,
        ),
    };
    let factors = scaling
        .map(|scaling| scaling::divisors(&scaling, base, dims))
        .transpose()?;
    Ok(Rope {
        base: single(base),
        dims,
        interleaved: false,
        factors: factors.flatten(),
    })
}

/// The layers that look back a limited way, if there are any.
fn window(fields: &Fields, kind: &str, layers: usize, far: &Rope) -> Result<Option<Window>, ConfigError> {
    const KEY: &str = "sliding_window";
    let gemma = kind == "gemma3_text";
    let off = match kind {
        "llama" => true,
        "mistral" if !fields.says(KEY) => {
            return Err(fields.wrong(KEY, "a number of tokens, or null for none").into());
        }
        // It counts only where it is switched on.
        "qwen2" | "qwen3" => fields.flag("use_sliding_window")? != Some(true),
        _ => false,
    };
    if off || fields.get(KEY).is_none() {
        return Ok(None);
    }
    let tokens = extent(KEY, fields.unsigned(KEY)?)?;
    let local = match fields.texts("layer_types")? {
        Some(types) => of_types(fields, &types, layers)?,
        None if gemma => {
            let pattern = fields.unsigned_or("sliding_window_pattern", 6)?;
            every_sixth_looks_far(layers, extent("sliding_window_pattern", pattern)?)
        }
        None if kind == "mistral" => vec![true; layers],
        None => {
            let first = fields.unsigned("max_window_layers")?;
            (0..layers as u64).map(|layer| layer >= first).collect()
        }
    };
    Ok(local.contains(&true).then_some(Window {
        tokens: u32::try_from(tokens).unwrap_or(u32::MAX),
        rope: if gemma {
            rope(fields, "sliding_attention", far.dims)?
        } else {
            far.clone()
        },
        layers: local,
    }))
}

fn of_types(fields: &Fields, types: &[&str], layers: usize) -> Result<Vec<bool>, ConfigError> {
    if types.len() != layers {
        return Err(fields
            .wrong("layer_types", "a list with the type of every layer")
            .into());
    }
    types
        .iter()
        .map(|kind| match *kind {
            "sliding_attention" => Ok(true),
            "full_attention" => Ok(false),
            other => unsupported(format!("config.json: layers of type `{other}` are not supported")),
        })
        .collect()
}
