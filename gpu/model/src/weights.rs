//! Weight tensors on their way from a file to a device: found by name, checked against the shape the model needs, fingerprinted.

use engine::{DType, Device, TensorView};
use sha2::{Digest, Sha256};

use crate::gguf::{Gguf, GgufError, TensorInfo, dtype_of};
use crate::llama::LoadError;

/// Loads tensors one at a time, so that memory holds one of them beside what the device keeps.
pub(crate) struct Loader<'a, D> {
    file: &'a Gguf,
    pub(crate) device: &'a mut D,
    buffer: Vec<u8>,
    hash: Sha256,
}

impl<'a, D: Device> Loader<'a, D> {
    pub(crate) fn new(file: &'a Gguf, device: &'a mut D) -> Self {
        Self {
            file,
            device,
            buffer: Vec::new(),
            hash: Sha256::new(),
        }
    }

    /// The matrix `name` of `rows` outputs and `columns` inputs.
    pub(crate) fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<D::Weight, LoadError> {
        self.optional(name, rows, columns)?
            .ok_or_else(|| wrong(name, "is missing".to_owned()))
    }

    /// The vector `name`, loaded as one row.
    pub(crate) fn vector(&mut self, name: &str, len: usize) -> Result<D::Weight, LoadError> {
        self.matrix(name, 1, len)
    }

    /// The matrix `name`, if the file has it.
    pub(crate) fn optional(
        &mut self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Option<D::Weight>, LoadError> {
        let Some(info) = self.file.tensor(name) else {
            return Ok(None);
        };
        let dtype = self.read(info, rows, columns)?;
        let view = TensorView {
            name,
            dtype,
            rows,
            columns,
            bytes: &self.buffer,
        };
        Ok(Some(self.device.load(view)?))
    }

    /// The `f32` vector `name` of divisors, for this side, if the file has it.
    pub(crate) fn divisors(&mut self, name: &str, len: usize) -> Result<Option<Vec<f32>>, LoadError> {
        let Some(info) = self.file.tensor(name) else {
            return Ok(None);
        };
        let dtype = self.read(info, 1, len)?;
        if dtype != DType::F32 {
            return Err(wrong(name, format!("is stored as {dtype:?}, not F32")));
        }
        let (numbers, _) = self.buffer.as_chunks();
        let numbers: Vec<f32> = numbers.iter().map(|&b| f32::from_le_bytes(b)).collect();
        match numbers.iter().find(|n| !(n.is_normal() && **n > 0.0)) {
            Some(bad) => Err(wrong(
                name,
                format!("holds {bad}, by which nothing can be divided"),
            )),
            None => Ok(Some(numbers)),
        }
    }

    /// A name for the weights read so far: two models with the same have the same numbers.
    pub(crate) fn fingerprint(self) -> String {
        self.hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
    }

    /// Fills the buffer with a tensor of this shape.
    fn read(&mut self, info: &TensorInfo, rows: usize, columns: usize) -> Result<DType, LoadError> {
        let found = shape(info);
        if found != Some((rows as u64, columns as u64)) {
            let what = format!(
                "has dimensions {:?}, where {columns} × {rows} are needed",
                info.dims
            );
            return Err(wrong(&info.name, what));
        }
        self.file.read_tensor(info, &mut self.buffer)?;
        let dtype =
            dtype_of(info.format).ok_or_else(|| wrong(&info.name, "has an unknown format".to_owned()))?;
        self.hash
            .update(format!("{}:{dtype:?}:{rows}x{columns}:", info.name));
        self.hash.update(&self.buffer);
        Ok(dtype)
    }
}

/// Rows and columns of a tensor of at most two dimensions; further ones may be 1.
fn shape(info: &TensorInfo) -> Option<(u64, u64)> {
    let rest = info.dims.get(2..).unwrap_or_default();
    let columns = *info.dims.first()?;
    let rows = info.dims.get(1).copied().unwrap_or(1);
    rest.iter().all(|&d| d == 1).then_some((rows, columns))
}

fn wrong(name: &str, what: String) -> LoadError {
    LoadError::File(GgufError::Tensor {
        name: name.to_owned(),
        what,
    })
}
