//! A model in the layout of the Hugging Face hub: a folder with `config.json`, `tokenizer.json` and safetensors.
//!
//! As with GGUF, nothing that stands in a file is believed: sizes are bounded, numbers checked, and every tensor lies inside its file.

mod fields;
mod names;
mod shards;
mod tensors;

use std::path::{Path, PathBuf};

pub(crate) use fields::Fields;
pub(crate) use shards::Place;
pub use tensors::{Extent, Safetensors};

use fields::{read_fields, read_file};
use shards::Shards;

/// Most bytes of a file of JSON or text. The largest vocabularies have 40 MB.
const TEXT_BYTES: u64 = 1 << 27;

/// Why a model's folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file could not be opened or read.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {what}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A file says something else than is needed.
    #[error("{file}: `{key}` should be {expected}, but is {found}")]
    Field {
        /// The file's name.
        file: &'static str,
        /// The key.
        key: String,
        /// What is needed.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A tensor is missing, or its format or shape is not what was asked for.
    #[error("tensor `{name}`: {what}")]
    Tensor {
        /// Its name.
        name: String,
        /// What is wrong.
        what: String,
    },
}

/// An open folder: its descriptions are in memory, its weights in their files.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    config: Fields,
    generation: Fields,
    tokenizer: Fields,
    shards: Shards,
}

impl Folder {
    /// Reads `config.json` and what is beside it, and the headers of all weights.
    ///
    /// # Errors
    /// When a file that is needed is missing, or one is damaged.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let optional =
            |name| Ok::<_, FolderError>(read_fields(path, name)?.unwrap_or_else(|| Fields::none(name)));
        let config = read_fields(path, "config.json")?.ok_or_else(|| FolderError::Damaged {
            path: path.to_owned(),
            what: "holds no model: there is no config.json in it".to_owned(),
        })?;
        Ok(Self {
            generation: optional("generation_config.json")?,
            tokenizer: optional("tokenizer_config.json")?,
            shards: Shards::open(path)?,
            path: path.to_owned(),
            config,
        })
    }

    /// What `config.json` says.
    pub(crate) fn config(&self) -> &Fields {
        &self.config
    }

    /// What `generation_config.json` says, if it is there.
    pub(crate) fn generation(&self) -> &Fields {
        &self.generation
    }

    /// What `tokenizer_config.json` says, if it is there.
    pub(crate) fn tokenizer(&self) -> &Fields {
        &self.tokenizer
    }

    /// The bytes of `tokenizer.json`.
    pub(crate) fn tokenizer_json(&self) -> Result<Vec<u8>, FolderError> {
        read_file(&self.path, "tokenizer.json")?.ok_or_else(|| FolderError::Damaged {
            path: self.path.clone(),
            what: "there is no tokenizer.json in it".to_owned(),
        })
    }

    /// The text of the chat template, if there is one: in a file of its own, or with the tokenizer.
    pub(crate) fn chat_template(&self) -> Result<Option<String>, FolderError> {
        const FILE: &str = "chat_template.jinja";
        if let Some(bytes) = read_file(&self.path, FILE)? {
            let text = String::from_utf8(bytes).map_err(|_| FolderError::Damaged {
                path: self.path.join(FILE),
                what: "is not UTF-8".to_owned(),
            })?;
            return Ok(Some(text));
        }
        self.tokenizer.chat_template()
    }

    /// Where the tensor is that GGUF calls `name`, if the folder has it.
    pub(crate) fn tensor(&self, name: &str) -> Option<&Place> {
        self.shards.tensor(&self.name(name)?)
    }

    /// What the tensor is called here that GGUF calls `name`.
    pub(crate) fn name(&self, name: &str) -> Option<String> {
        names::here(name, self.config.get("model_type").and_then(|t| t.as_str())?)
    }

    /// Reads the bytes of a tensor into `into`, replacing what was there.
    pub(crate) fn read(&self, place: &Place, into: &mut Vec<u8>) -> Result<(), FolderError> {
        self.shards.read(place, into)
    }

    /// A tensor that is none of `used`, and that a model of this kind would compute with.
    pub(crate) fn left_over(&self, used: impl Fn(&str) -> bool) -> Option<&str> {
        // Old programs have saved frequencies; they follow from config.json.
        let known = |name: &str| used(name) || name.ends_with("rotary_emb.inv_freq");
        self.shards.names().find(|name| !known(name))
    }

    /// The folder's name, by which clients know the model.
    pub(crate) fn model_name(&self) -> Option<String> {
        let whole = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let name = whole.file_name()?.to_string_lossy().into_owned();
        Some(name).filter(|name| !name.is_empty())
    }
}
