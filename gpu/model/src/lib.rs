//! Weights, tokenizer, chat template, sampler and architectures: tokens to logits.
//!
//! [`Model::open`] reads what a gateway needs of a model (tokenizer, template, shape) and no weights; [`Model::backend`] puts the
//! weights on a device. [`fetch`](fetch()) brings a model file to this machine.

mod chat;
mod config;
mod fetch;
mod folder;
mod gguf;
mod llama;
mod model;
mod sampler;
mod stop;
mod template;
mod tokenizer;
mod weights;

pub use chat::{ChatError, Rendered};
pub use config::{Config, ConfigError, Norms, Window};
pub use fetch::{FetchError, FetchOptions, ModelSource, Progress, default_cache_dir, fetch};
pub use folder::{Extent, Folder, FolderError, Safetensors};
pub use gguf::{Gguf, GgufError, TensorInfo, Value};
pub use llama::{Llama, LoadError, PoolOptions};
pub use model::{Model, ModelFile, OpenError};
pub use stop::{StopFinder, StopStep};
pub use template::{ChatMessage, ChatTemplate, TemplateError};
pub use tokenizer::{Detokenizer, Tokenizer, TokenizerError};
