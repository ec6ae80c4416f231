//! A model's shape, from its file.

use engine::Rope;

use crate::gguf::{Gguf, GgufError, Value};

/// Why a model cannot be run here.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file does not say what is needed.
    #[error(transparent)]
    File(#[from] GgufError),
    /// It says something that this program has no code for.
    #[error("{0}")]
    Unsupported(String),
}

/// The shape of a decoder of the Llama family.
#[derive(Clone, Debug)]
pub struct Config {
    /// The architecture's name in the file: `llama`, `qwen2`, `qwen3`.
    pub architecture: String,
    /// Decoder layers.
    pub layers: usize,
    /// Numbers in the residual stream.
    pub width: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Numbers a head.
    pub head_dim: usize,
    /// Numbers inside the feed-forward block.
    pub ffn_width: usize,
    /// Tokens in the vocabulary.
    pub vocabulary: usize,
    /// Longest sequence in tokens.
    pub context_tokens: u32,
    /// Added to the mean square in norms.
    pub rms_epsilon: f32,
    /// Position embedding; `factors` still empty (they are a tensor).
    pub rope: Rope,
}

/// Most numbers in a vector and tokens in a context.
const LIMIT: u64 = 1 << 24;
/// Most layers, heads and numbers a head: the size of a KV block, a product of all three, cannot overflow.
const FEW: usize = 1 << 12;

impl Config {
    /// Reads the shape from GGUF metadata.
    ///
    /// # Errors
    /// When something is missing, impossible, or of an architecture that is not supported.
    pub fn from_gguf(file: &Gguf) -> Result<Self, ConfigError> {
        let architecture = file.text("general.architecture")?.to_owned();
        let interleaved = match architecture.as_str() {
            "llama" => true,
            "qwen2" | "qwen3" => false,
            other => {
                let what =
                    format!("architecture `{other}` is not supported; supported are llama, qwen2, qwen3");
                return Err(ConfigError::Unsupported(what));
            }
        };
        let key = |name: &str| format!("{architecture}.{name}");
        let extent = |name: &str| extent(file, &key(name));
        let optional = |name: &str| file.value(&key(name)).is_some();
        unscaled_rope(file, &architecture)?;

        let width = extent("embedding_length")?;
        let heads = extent("attention.head_count")?;
        let kv_heads = if optional("attention.head_count_kv") {
            extent("attention.head_count_kv")?
        } else {
            heads
        };
        let head_dim = if optional("attention.key_length") {
            extent("attention.key_length")?
        } else {
            width / heads
        };
        let dims = if optional("rope.dimension_count") {
            extent("rope.dimension_count")?
        } else {
            head_dim
        };
        let base = if optional("rope.freq_base") {
            file.float(&key("rope.freq_base"))?
        } else {
            10_000.0
        };
        let config = Self {
            layers: extent("block_count")?,
            width,
            heads,
            kv_heads,
            head_dim,
            ffn_width: extent("feed_forward_length")?,
            vocabulary: file.array("tokenizer.ggml.tokens")?.len(),
            context_tokens: u32::try_from(extent("context_length")?).unwrap_or(u32::MAX),
            rms_epsilon: file.float(&key("attention.layer_norm_rms_epsilon"))?,
            rope: Rope {
                base,
                dims,
                interleaved,
                factors: None,
            },
            architecture,
        };
        config.consistent()?;
        Ok(config)
    }

    fn consistent(&self) -> Result<(), ConfigError> {
        let wrong = |what: &str| Err(ConfigError::Unsupported(format!("impossible shape: {what}")));
        match self {
            c if c.heads % c.kv_heads != 0 => wrong("query heads are not a multiple of key heads"),
            c if c.layers.max(c.heads).max(c.head_dim) > FEW => {
                wrong("more than 4096 layers, heads or numbers a head")
            }
            c if c.head_dim == 0 || c.vocabulary == 0 => wrong("a head or the vocabulary is empty"),
            c if c.rope.dims % 2 != 0 || c.rope.dims > c.head_dim => wrong("rotated dimensions"),
            c if !(c.rms_epsilon > 0.0 && c.rms_epsilon < 1.0) => wrong("epsilon of the norms"),
            c if !(c.rope.base >= 1.0 && c.rope.base.is_finite()) => wrong("base of the rotary embedding"),
            _ => Ok(()),
        }
    }
}

/// A size that must be positive and sane.
fn extent(file: &Gguf, key: &str) -> Result<usize, ConfigError> {
    let n = file.unsigned(key)?;
    match usize::try_from(n) {
        Ok(size) if n > 0 && n <= LIMIT => Ok(size),
        _ => Err(ConfigError::Unsupported(format!(
            "`{key}` is {n}, which is not between 1 and {LIMIT}"
        ))),
    }
}

/// Refuses scaled position embeddings: running such a model unscaled would give subtly wrong answers.
fn unscaled_rope(file: &Gguf, architecture: &str) -> Result<(), ConfigError> {
    let refused = |what: &str| {
        let what = format!("rope scaling {what} is not supported");
        Err(ConfigError::Unsupported(what))
    };
    let value = |name: &str| file.value(&format!("{architecture}.rope.{name}"));
    match value("scaling.type") {
        Some(Value::Text(kind)) if kind == "none" => return Ok(()),
        Some(kind) => return refused(&format!("`{}`", kind.as_text().unwrap_or(kind.kind()))),
        None => {}
    }
    // A factor without a type is linear; older files have another name for it. 0 stands for none.
    for name in ["scaling.factor", "scale_linear"] {
        match value(name).map(Value::as_float) {
            None | Some(Some(0.0 | 1.0)) => {}
            Some(_) => return refused(&format!("(`{architecture}.rope.{name}`)")),
        }
    }
    Ok(())
}
