//! From GGUF metadata.

use engine::{Gate, Rope};

use super::{
    Config, ConfigError, GEMMA_LOCAL_BASE, Norms, Window, attention_scale, embedding_scale,
    every_sixth_looks_far, extent, unsupported,
};
use crate::gguf::{Gguf, Value};

/// The keys of one architecture.
struct Keys<'a> {
    file: &'a Gguf,
    architecture: &'a str,
}

impl Keys<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture)
    }

    fn has(&self, name: &str) -> bool {
        self.file.value(&self.key(name)).is_some()
    }

    fn extent(&self, name: &str) -> Result<usize, ConfigError> {
        let key = self.key(name);
        extent(&key, self.file.unsigned(&key)?)
    }

    fn extent_or(&self, name: &str, other: usize) -> Result<usize, ConfigError> {
        if self.has(name) {
            self.extent(name)
        } else {
            Ok(other)
        }
    }

    fn float_or(&self, name: &str, other: f32) -> Result<f32, ConfigError> {
        Ok(if self.has(name) {
            self.file.float(&self.key(name))?
        } else {
            other
        })
    }
}

impl Config {
    /// Reads the shape from GGUF metadata.
    ///
    /// # Errors
    /// When something is missing, impossible, or of an architecture that is not supported.
    pub fn from_gguf(file: &Gguf) -> Result<Self, ConfigError> {
        let architecture = file.text("general.architecture")?;
        let interleaved = match architecture {
            "llama" => true,
            "qwen2" | "qwen3" | "gemma3" => false,
            other => {
                return unsupported(format!(
                    "architecture `{other}` is not supported; supported are llama, qwen2, qwen3, gemma3"
                ));
            }
        };
        let keys = Keys { file, architecture };
        unscaled_rope(file, architecture)?;
        let gemma = architecture == "gemma3";
        let (width, heads) = (
            keys.extent("embedding_length")?,
            keys.extent("attention.head_count")?,
        );
        let head_dim = keys.extent_or("attention.key_length", width / heads)?;
        let layers = keys.extent("block_count")?;
        let rope = Rope {
            base: keys.float_or("rope.freq_base", 10_000.0)?,
            dims: keys.extent_or("rope.dimension_count", head_dim)?,
            interleaved,
            factors: None,
        };
        let config = Self {
            layers,
            width,
            heads,
            kv_heads: keys.extent_or("attention.head_count_kv", heads)?,
            head_dim,
            ffn_width: keys.extent("feed_forward_length")?,
            vocabulary: file.array("tokenizer.ggml.tokens")?.len(),
            context_tokens: u32::try_from(keys.extent("context_length")?).unwrap_or(u32::MAX),
            rms_epsilon: file.float(&keys.key("attention.layer_norm_rms_epsilon"))?,
            window: window(&keys, layers, &rope)?,
            rope,
            // Of Gemma 3's sizes one, with 62 layers, is scaled by the width a head would have had.
            attention_scale: attention_scale(if gemma && layers == 62 {
                width / heads
            } else {
                head_dim
            }),
            embedding_scale: if gemma { embedding_scale(width) } else { 1.0 },
            gate: if gemma { Gate::Gelu } else { Gate::Silu },
            norms: Norms {
                heads: matches!(architecture, "qwen3" | "gemma3"),
                outputs: gemma,
                less_one: false,
            },
            tied: None,
            architecture: architecture.to_owned(),
        };
        config.consistent()?;
        Ok(config)
    }
}

/// The layers that look back a limited way: in Gemma 3 five of six, which have a base of their own; else all.
fn window(keys: &Keys<'_>, layers: usize, rope: &Rope) -> Result<Option<Window>, ConfigError> {
    const KEY: &str = "attention.sliding_window";
    let gemma = keys.architecture == "gemma3";
    // Some files write 0 for none.
    let none = keys.file.value(&keys.key(KEY)).and_then(Value::as_unsigned) == Some(0);
    if none || !(gemma || keys.has(KEY)) {
        return Ok(None);
    }
    let pattern = keys.extent_or("attention.sliding_window_pattern", 6)?;
    let base = keys.float_or(
        "rope.freq_base_swa",
        if gemma { GEMMA_LOCAL_BASE } else { rope.base },
    )?;
    Ok(Some(Window {
        tokens: u32::try_from(keys.extent(KEY)?).unwrap_or(u32::MAX),
        rope: Rope { base, ..rope.clone() },
        layers: if gemma {
            every_sixth_looks_far(layers, pattern)
        } else {
            vec![true; layers]
        },
    }))
}

/// Refuses scaled position embeddings: running such a model unscaled would give subtly wrong answers.
fn unscaled_rope(file: &Gguf, architecture: &str) -> Result<(), ConfigError> {
    let refused = |what: &str| unsupported(format!("rope scaling {what} is not supported"));
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
