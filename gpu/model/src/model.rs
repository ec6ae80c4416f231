//! A model file as the rest of the program sees it.

use std::path::Path;
use std::sync::Arc;

use engine::{Device, Token};

use crate::config::{Config, ConfigError};
use crate::gguf::{Gguf, GgufError};
use crate::llama::{Llama, LoadError, PoolOptions};
use crate::template::{ChatTemplate, TemplateError};
use crate::tokenizer::{Tokenizer, TokenizerError};

/// Why a model file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be read.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// What is wrong.
        source: GgufError,
    },
    /// Its model cannot be run.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Its vocabulary cannot be used.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// Its chat template cannot be used.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

/// A model's file, open: its shape and what ends its answers are in memory, weights still in the file. All that a worker needs.
#[derive(Debug)]
pub struct ModelFile {
    name: String,
    config: Config,
    end_tokens: Vec<Token>,
    file: Gguf,
}

impl ModelFile {
    /// Opens a GGUF file. Reads its header, not its weights.
    ///
    /// # Errors
    /// When the file cannot be read, or holds a model that is not supported.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let file = Gguf::open(path).map_err(|source| OpenError::File {
            path: path.display().to_string(),
            source,
        })?;
        let config = Config::from_gguf(&file)?;
        let end_tokens = Tokenizer::end_tokens_of(&file)?;
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned());
        let name = stem
            .filter(|s| !s.is_empty())
            .unwrap_or_else(|| config.architecture.clone());
        Ok(Self {
            name,
            config,
            end_tokens,
            file,
        })
    }

    /// The file's name without its ending, by which clients know the model: `SmolLM2-135M-Instruct.Q4_1`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The model's shape.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Tokens that end an answer, ascending.
    #[must_use]
    pub fn end_tokens(&self) -> &[Token] {
        &self.end_tokens
    }

    /// Puts the weights on `device` and allocates the KV pool there. Reads the whole file, one tensor at a time.
    ///
    /// # Errors
    /// When a tensor is missing or has the wrong shape or format, or the device refuses it.
    pub fn backend<D: Device>(&self, device: D, pool: PoolOptions) -> Result<Llama<D>, LoadError> {
        Llama::load(self, &self.file, device, pool)
    }
}

/// An open model: tokenizer, template and shape in memory, weights still in the file. Cheap enough for a gateway.
#[derive(Debug)]
pub struct Model {
    file: Arc<ModelFile>,
    tokenizer: Arc<Tokenizer>,
    template: Option<Arc<ChatTemplate>>,
}

impl Model {
    /// Opens a GGUF file. Reads its header, not its weights.
    ///
    /// # Errors
    /// When the file cannot be read, or holds a model that is not supported.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let file = Arc::new(ModelFile::open(path)?);
        let tokenizer = Tokenizer::from_gguf(&file.file)?;
        let template = template(&file.file, &tokenizer)?;
        Ok(Self {
            file,
            tokenizer: Arc::new(tokenizer),
            template,
        })
    }

    /// What workers need of it.
    #[must_use]
    pub fn file(&self) -> &Arc<ModelFile> {
        &self.file
    }

    /// The file's name without its ending: see [`ModelFile::name`].
    #[must_use]
    pub fn name(&self) -> &str {
        self.file.name()
    }

    /// Text to tokens and back.
    #[must_use]
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    /// Messages to a prompt; `None` for a base model.
    #[must_use]
    pub fn template(&self) -> Option<&Arc<ChatTemplate>> {
        self.template.as_ref()
    }

    /// The model's shape.
    #[must_use]
    pub fn config(&self) -> &Config {
        self.file.config()
    }

    /// See [`ModelFile::backend`].
    ///
    /// # Errors
    /// When a tensor is missing or has the wrong shape or format, or the device refuses it.
    pub fn backend<D: Device>(&self, device: D, pool: PoolOptions) -> Result<Llama<D>, LoadError> {
        self.file.backend(device, pool)
    }
}

/// The file's chat template, if it has one.
fn template(file: &Gguf, tokenizer: &Tokenizer) -> Result<Option<Arc<ChatTemplate>>, OpenError> {
    const KEY: &str = "tokenizer.chat_template";
    if file.value(KEY).is_none() {
        return Ok(None);
    }
    let source = file.text(KEY).map_err(ConfigError::from)?;
    let spelling = |token: Option<Token>| {
        let bytes = token.map_or(&[][..], |token| tokenizer.token_bytes(token));
        String::from_utf8_lossy(bytes).into_owned()
    };
    let template = ChatTemplate::new(source, &spelling(tokenizer.bos()), &spelling(tokenizer.eos()))?;
    Ok(Some(Arc::new(template)))
}
