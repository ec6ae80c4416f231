//! GGUF files, versions 2 and 3: the header is read and checked when a file is opened, tensor data only when it is asked for.
//!
//! Nothing a header says is believed: every count is bounded by the bytes that are left and by [`limits`], every tensor lies inside
//! the file.

mod dtype;
mod header;
mod limits;
mod reader;
mod value;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::FileExt;
use std::path::Path;

pub(crate) use dtype::{byte_len, dtype_of};
pub use value::Value;

use header::Header;

/// Why a GGUF file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    /// The file could not be opened or read.
    #[error("cannot read the file: {0}")]
    Io(#[from] std::io::Error),
    /// It is not GGUF, or of a version that is not read here.
    #[error("not a GGUF file of version 2 or 3: {0}")]
    NotGguf(String),
    /// The header contradicts itself, the file's length or this reader's limits.
    #[error("damaged GGUF header at byte {at}: {what}")]
    Damaged {
        /// Bytes read so far.
        at: u64,
        /// What is wrong.
        what: String,
    },
    /// A metadata key is missing or has another type.
    #[error("metadata `{key}` should be {expected}, but is {found}")]
    Metadata {
        /// The key.
        key: String,
        /// What the reader needs.
        expected: &'static str,
        /// What the file has.
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

/// Where a tensor lies and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Name in the file.
    pub name: String,
    /// Dimensions as GGUF has them: the first varies fastest, so a matrix is `[columns, rows]`.
    pub dims: Vec<u64>,
    /// GGML's number of the storage format.
    pub format: u32,
    /// Bytes from the start of the file.
    pub offset: u64,
}

/// An open GGUF file.
#[derive(Debug)]
pub struct Gguf {
    file: File,
    header: Header,
}

impl Gguf {
    /// Reads and checks the header of `path`.
    ///
    /// # Errors
    /// When the file cannot be read, is not GGUF, or is damaged.
    pub fn open(path: &Path) -> Result<Self, GgufError> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        let header = header::read(BufReader::with_capacity(1 << 16, &file), len)?;
        Ok(Self { file, header })
    }

    /// Reads and checks a header that is in memory; for tests and tools. `bytes` is the whole file.
    ///
    /// # Errors
    /// As [`Gguf::open`].
    pub fn check(bytes: &[u8]) -> Result<(BTreeMap<String, Value>, Vec<TensorInfo>), GgufError> {
        let header = header::read(bytes, bytes.len() as u64)?;
        Ok((header.metadata, header.tensors.into_values().collect()))
    }

    /// The metadata value of `key`.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.header.metadata.get(key)
    }

    /// The tensor called `name`.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.header.tensors.get(name)
    }

    /// All tensors, by name.
    pub fn tensors(&self) -> impl Iterator<Item = &TensorInfo> {
        self.header.tensors.values()
    }

    /// An unsigned metadata value.
    ///
    /// # Errors
    /// When it is missing or something else.
    pub fn unsigned(&self, key: &str) -> Result<u64, GgufError> {
        self.typed(key, "an unsigned number", Value::as_unsigned)
    }

    /// A floating-point metadata value.
    ///
    /// # Errors
    /// When it is missing or something else.
    pub fn float(&self, key: &str) -> Result<f32, GgufError> {
        self.typed(key, "a number", Value::as_float)
    }

    /// A text metadata value.
    ///
    /// # Errors
    /// When it is missing or something else.
    pub fn text(&self, key: &str) -> Result<&str, GgufError> {
        self.typed(key, "a text", Value::as_text)
    }

    /// An array metadata value.
    ///
    /// # Errors
    /// When it is missing or something else.
    pub fn array(&self, key: &str) -> Result<&[Value], GgufError> {
        self.typed(key, "an array", Value::as_array)
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        get: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<T, GgufError> {
        let value = self.value(key);
        value.and_then(get).ok_or_else(|| GgufError::Metadata {
            key: key.to_owned(),
            expected,
            found: value.map_or_else(|| "missing".to_owned(), |v| v.kind().to_owned()),
        })
    }

    /// Reads the bytes of a tensor into `into`, replacing what was there.
    ///
    /// # Errors
    /// When the format is unknown or the file cannot be read.
    pub fn read_tensor(&self, tensor: &TensorInfo, into: &mut Vec<u8>) -> Result<(), GgufError> {
        let wrong = |what: &str| GgufError::Tensor {
            name: tensor.name.clone(),
            what: what.to_owned(),
        };
        let dtype = dtype_of(tensor.format).ok_or_else(|| wrong("its storage format is not supported"))?;
        let len =
            byte_len(dtype, &tensor.dims).ok_or_else(|| wrong("its size is not a whole number of blocks"))?;
        into.clear();
        into.resize(
            usize::try_from(len).map_err(|_| wrong("too large for this machine"))?,
            0,
        );
        // Not seek and read: several workers of one process may load from one open file.
        self.file
            .read_exact_at(into, tensor.offset)
            .map_err(|error| wrong(&format!("cannot be read: {error}")))
    }
}
