//! One file of safetensors: a length, a header in JSON, and numbers.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use engine::DType;
use safetensors::Dtype;
use safetensors::tensor::Metadata;

use super::FolderError;

/// Bytes of the length in front of the header.
const LENGTH_BYTES: u64 = 8;
/// Most bytes of a header. Models of a thousand tensors a shard have 100 KB.
const HEADER_BYTES: u64 = 1 << 25;

/// The storage format as devices know it, if they do.
fn dtype_of(dtype: Dtype) -> Option<DType> {
    match dtype {
        Dtype::F32 => Some(DType::F32),
        Dtype::F16 => Some(DType::F16),
        Dtype::BF16 => Some(DType::Bf16),
        _ => None,
    }
}

/// Where a tensor lies in its file, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its name.
    pub name: String,
    /// Dimensions; the last varies fastest, so a matrix is `[rows, columns]`.
    pub dims: Vec<usize>,
    /// Its storage format, if it is one that is supported; else what it is called.
    pub dtype: Result<DType, String>,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Bytes in the file.
    pub len: u64,
}

/// An open file of safetensors.
#[derive(Debug)]
pub struct Safetensors {
    path: PathBuf,
    file: File,
    tensors: Vec<Extent>,
}

impl Safetensors {
    /// Reads and checks the header of `path`.
    ///
    /// # Errors
    /// When the file cannot be read, or is damaged.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let failed = |source| FolderError::Io {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        let tensors = header(&file, len).map_err(|what| FolderError::Damaged {
            path: path.to_owned(),
            what,
        })?;
        Ok(Self {
            path: path.to_owned(),
            file,
            tensors,
        })
    }

    /// Reads and checks a header that is in memory; for tests and tools. `bytes` is the whole file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(bytes: &[u8]) -> Result<Vec<Extent>, String> {
        header(bytes, bytes.len() as u64)
    }

    /// All tensors, in the order in which they lie.
    pub fn tensors(&self) -> &[Extent] {
        &self.tensors
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the bytes of a tensor into `into`, replacing what was there.
    pub(super) fn read(&self, tensor: &Extent, into: &mut Vec<u8>) -> Result<(), FolderError> {
        let wrong = |what: String| FolderError::Tensor {
            name: tensor.name.clone(),
            what,
        };
        let len = usize::try_from(tensor.len).map_err(|_| wrong("too large for this machine".to_owned()))?;
        into.clear();
        into.resize(len, 0);
        // Not seek and read: several workers of one process may load from one open file.
        self.file
            .read_exact_at(into, tensor.offset)
            .map_err(|error| wrong(format!("cannot be read: {error}")))
    }
}

/// The tensors that the header of a file of `len` bytes lists. They follow each other without gaps and fill the file.
fn header(mut source: impl Read, len: u64) -> Result<Vec<Extent>, String> {
    let mut length = [0; 8];
    source
        .read_exact(&mut length)
        .map_err(|_| "is no safetensors file: it has less than 8 bytes".to_owned())?;
    let length = u64::from_le_bytes(length);
    let room = len.saturating_sub(LENGTH_BYTES).min(HEADER_BYTES);
    if length > room {
        return Err(format!(
            "is no safetensors file: its header would have {length} bytes, and {room} are the most it can have"
        ));
    }
    let mut json = Vec::new();
    let read = source
        .take(length)
        .read_to_end(&mut json)
        .map_err(|e| e.to_string())?;
    if read as u64 != length {
        return Err("it ends inside its header".to_owned());
    }
    let header: Metadata = serde_json::from_slice(&json).map_err(|e| format!("damaged header: {e}"))?;
    let start = LENGTH_BYTES + length;
    let end = start.checked_add(header.data_len() as u64);
    if end != Some(len) {
        return Err(format!(
            "damaged: the header lists {} bytes of numbers, and {} follow it",
            header.data_len(),
            len - start
        ));
    }
    let names = header.offset_keys();
    let tensors = names.into_iter().filter_map(|name| {
        let info = header.info(&name)?;
        let (begin, end) = info.data_offsets;
        Some(Extent {
            name,
            dims: info.shape.clone(),
            dtype: dtype_of(info.dtype).ok_or_else(|| info.dtype.to_string()),
            offset: start + begin as u64,
            len: (end - begin) as u64,
        })
    });
    Ok(tensors.collect())
}
