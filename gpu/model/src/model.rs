//! A model's files as the rest of the program sees it.

use std::path::Path;
use std::sync::Arc;

use engine::{Device, Token};

use crate::config::{Config, ConfigError};
use crate::folder::{Folder, FolderError};
use crate::gguf::{Gguf, GgufError};
use crate::llama::{Llama, LoadError, PoolOptions};
use crate::template::{ChatTemplate, TemplateError};
use crate::tokenizer::{Tokenizer, TokenizerError};
use crate::weights::Source;

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
    /// The same, of a folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
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

/// A model's files, open: its shape and what ends its answers are in memory, weights still in the files. All that a worker needs.
#[derive(Debug)]
pub struct ModelFile {
    name: String,
    config: Config,
    end_tokens: Vec<Token>,
    source: Source,
}

impl ModelFile {
    /// Opens a GGUF file, or a folder in the layout of the Hugging Face hub. Reads headers, not weights.
    ///
    /// # Errors
    /// When a file cannot be read, or holds a model that is not supported.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        if path.is_dir() {
            Self::open_folder(path)
        } else {
            Self::open_gguf(path)
        }
    }

    fn open_gguf(path: &Path) -> Result<Self, OpenError> {
        let file = Gguf::open(path).map_err(|source| OpenError::File {
            path: path.display().to_string(),
            source,
        })?;
        let config = Config::from_gguf(&file)?;
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned());
        Ok(Self {
            name: stem
                .filter(|s| !s.is_empty())
                .unwrap_or_else(|| config.architecture.clone()),
            end_tokens: Tokenizer::end_tokens_of(&file)?,
            config,
            source: Source::Gguf(file),
        })
    }

    fn open_folder(path: &Path) -> Result<Self, OpenError> {
        let folder = Folder::open(path)?;
        let config = Config::from_folder(&folder)?;
        Ok(Self {
            name: folder.model_name().unwrap_or_else(|| config.architecture.clone()),
            end_tokens: Tokenizer::end_tokens_of_folder(&folder, config.vocabulary)?,
            config,
            source: Source::Folder(folder),
        })
    }

    /// The name of the file without its ending, or of the folder, by which clients know the model: `SmolLM2-135M-Instruct.Q4_1`.
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

    /// Puts the weights on `device` and allocates the KV pool there. Reads all of them, one tensor at a time.
    ///
    /// # Errors
    /// When a tensor is missing or has the wrong shape or format, or the device refuses it.
    pub fn backend<D: Device>(&self, device: D, pool: PoolOptions) -> Result<Llama<D>, LoadError> {
        Llama::load(self, &self.source, device, pool)
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
    /// Opens a GGUF file, or a folder in the layout of the Hugging Face hub. Reads headers, not weights.
    ///
    /// # Errors
    /// When a file cannot be read, or holds a model that is not supported.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let file = Arc::new(ModelFile::open(path)?);
        let (tokenizer, template) = match &file.source {
            Source::Gguf(gguf) => (Tokenizer::from_gguf(gguf)?, template_of(gguf)?),
            Source::Folder(folder) => {
                let tokenizer = Tokenizer::from_folder(folder, file.config.vocabulary)?;
                (tokenizer, folder.chat_template()?)
            }
        };
        let template = template.map(|source| compile(&source, &tokenizer)).transpose()?;
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

    /// By which clients know it: see [`ModelFile::name`].
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

/// The text of a file's chat template, if it has one.
fn template_of(file: &Gguf) -> Result<Option<String>, OpenError> {
    const KEY: &str = "tokenizer.chat_template";
    if file.value(KEY).is_none() {
        return Ok(None);
    }
    Ok(Some(file.text(KEY).map_err(ConfigError::from)?.to_owned()))
}

fn compile(source: &str, tokenizer: &Tokenizer) -> Result<Arc<ChatTemplate>, OpenError> {
    let spelling = |token: Option<Token>| {
        let bytes = token.map_or(&[][..], |token| tokenizer.token_bytes(token));
        String::from_utf8_lossy(bytes).into_owned()
    };
    let template = ChatTemplate::new(source, &spelling(tokenizer.bos()), &spelling(tokenizer.eos()))?;
    Ok(Arc::new(template))
}
