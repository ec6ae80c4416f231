//! Weight tensors on their way from files to a device: found by name, checked against the shape the model needs, fingerprinted.

use std::collections::BTreeSet;

use engine::{DType, Device, TensorView};
use sha2::{Digest, Sha256};

use crate::folder::{Folder, FolderError};
use crate::gguf::{Gguf, GgufError, dtype_of};
use crate::llama::LoadError;

/// Where a model's tensors are.
#[derive(Debug)]
pub(crate) enum Source {
    /// All in one file.
    Gguf(Gguf),
    /// In the layout of the Hugging Face hub.
    Folder(Folder),
}

/// Loads tensors one at a time, so that memory holds one of them beside what the device keeps. Names are GGUF's.
pub(crate) struct Loader<'a, D> {
    source: &'a Source,
    pub(crate) device: &'a mut D,
    buffer: Vec<u8>,
    hash: Sha256,
    /// What was asked for.
    used: BTreeSet<String>,
}

impl<'a, D: Device> Loader<'a, D> {
    pub(crate) fn new(source: &'a Source, device: &'a mut D) -> Self {
        Self {
            source,
            device,
            buffer: Vec::new(),
            hash: Sha256::new(),
            used: BTreeSet::new(),
        }
    }

    /// The matrix `name` of `rows` outputs and `columns` inputs.
    pub(crate) fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<D::Weight, LoadError> {
        self.optional(name, rows, columns)?
            .ok_or_else(|| self.wrong(name, "is missing".to_owned()))
    }

    /// The weight of a norm. `less_one`: what is stored is to be added to one.
    pub(crate) fn norm(&mut self, name: &str, len: usize, less_one: bool) -> Result<D::Weight, LoadError> {
        let Some(dtype) = self.read(name, 1, len)? else {
            return Err(self.wrong(name, "is missing".to_owned()));
        };
        if !less_one {
            return self.give(name, dtype, 1, len);
        }
        let add_one = |number: f32| (number + 1.0).to_le_bytes();
        let bytes: Vec<u8> = match dtype {
            DType::F32 => self.each(|b| add_one(f32::from_le_bytes(b))),
            DType::F16 => self.each(|b| add_one(half::f16::from_le_bytes(b).to_f32())),
            DType::Bf16 => self.each(|b| add_one(half::bf16::from_le_bytes(b).to_f32())),
            other => return Err(self.wrong(name, format!("is stored as {other:?}"))),
        };
        self.buffer = bytes;
        self.give(name, DType::F32, 1, len)
    }

    /// The matrix `name`, if there is one.
    pub(crate) fn optional(
        &mut self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Option<D::Weight>, LoadError> {
        let dtype = self.read(name, rows, columns)?;
        dtype
            .map(|dtype| self.give(name, dtype, rows, columns))
            .transpose()
    }

    /// The `f32` vector `name` of divisors, for this side, if there is one.
    pub(crate) fn divisors(&mut self, name: &str, len: usize) -> Result<Option<Vec<f32>>, LoadError> {
        let Some(dtype) = self.read(name, 1, len)? else {
            return Ok(None);
        };
        if dtype != DType::F32 {
            return Err(self.wrong(name, format!("is stored as {dtype:?}, not F32")));
        }
        let (numbers, _) = self.buffer.as_chunks();
        let numbers: Vec<f32> = numbers.iter().map(|&b| f32::from_le_bytes(b)).collect();
        match numbers.iter().find(|n| !(n.is_normal() && **n > 0.0)) {
            Some(bad) => Err(self.wrong(name, format!("holds {bad}, by which nothing can be divided"))),
            None => Ok(Some(numbers)),
        }
    }

    /// Whether there is a tensor `name`.
    pub(crate) fn has(&self, name: &str) -> bool {
        match self.source {
            Source::Gguf(file) => file.tensor(name).is_some(),
            Source::Folder(folder) => folder.tensor(name).is_some(),
        }
    }

    /// A name for the weights read so far: two models with the same have the same numbers.
    ///
    /// # Errors
    /// When a folder has a tensor that was not asked for: its model computes something that this program has no code for, and would
    /// give subtly wrong answers without. `head` says that the output weights are the embedding's, whatever else is stored.
    pub(crate) fn fingerprint(self, tied: bool) -> Result<String, LoadError> {
        if let Source::Folder(folder) = self.source {
            let head = folder.name("output.weight").filter(|_| tied);
            let used = |name: &str| self.used.contains(name) || head.as_deref() == Some(name);
            if let Some(name) = folder.left_over(used) {
                let what = "is in the files, and a model of this kind has no use for it".to_owned();
                let name = name.to_owned();
                return Err(LoadError::Folder(FolderError::Tensor { name, what }));
            }
        }
        Ok(self.hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
    }

    /// Hands what is in the buffer to the device.
    fn give(
        &mut self,
        name: &str,
        dtype: DType,
        rows: usize,
        columns: usize,
    ) -> Result<D::Weight, LoadError> {
        Ok(self.device.load(TensorView {
            name,
            dtype,
            rows,
            columns,
            bytes: &self.buffer,
        })?)
    }

    /// Something of four bytes for every `N` bytes in the buffer.
    fn each<const N: usize>(&self, change: impl Fn([u8; N]) -> [u8; 4]) -> Vec<u8> {
        let (numbers, _) = self.buffer.as_chunks();
        numbers.iter().flat_map(|&bytes| change(bytes)).collect()
    }

    /// Fills the buffer with a tensor of this shape, if there is one of this name.
    fn read(&mut self, name: &str, rows: usize, columns: usize) -> Result<Option<DType>, LoadError> {
        let dtype = match self.source {
            Source::Gguf(file) => {
                let Some(info) = file.tensor(name) else {
                    return Ok(None);
                };
                if shape(info.dims.iter().copied()) != Some((rows as u64, columns as u64)) {
                    let what = format!(
                        "has dimensions {:?}, where {columns} × {rows} are needed",
                        info.dims
                    );
                    return Err(self.wrong(name, what));
                }
                file.read_tensor(info, &mut self.buffer)?;
                dtype_of(info.format).ok_or_else(|| self.wrong(name, "has an unknown format".to_owned()))?
            }
            Source::Folder(folder) => {
                let Some(place) = folder.tensor(name) else {
                    return Ok(None);
                };
                let extent = &place.extent;
                if shape(extent.dims.iter().rev().map(|n| *n as u64)) != Some((rows as u64, columns as u64)) {
                    let what = format!(
                        "has dimensions {:?}, where {rows} × {columns} are needed",
                        extent.dims
                    );
                    return Err(self.wrong(name, what));
                }
                let dtype = extent.dtype.clone().map_err(|format| {
                    let what = format!("is stored as {format}; supported are F32, F16 and BF16");
                    self.wrong(name, what)
                })?;
                folder.read(place, &mut self.buffer)?;
                self.used.insert(extent.name.clone());
                dtype
            }
        };
        self.hash.update(format!("{name}:{dtype:?}:{rows}x{columns}:"));
        self.hash.update(&self.buffer);
        Ok(Some(dtype))
    }

    /// An error about a tensor, by the name that its file has for it.
    fn wrong(&self, name: &str, what: String) -> LoadError {
        match self.source {
            Source::Gguf(_) => LoadError::File(GgufError::Tensor {
                name: name.to_owned(),
                what,
            }),
            Source::Folder(folder) => LoadError::Folder(FolderError::Tensor {
                name: folder.name(name).unwrap_or_else(|| name.to_owned()),
                what,
            }),
        }
    }
}

/// Rows and columns of a tensor of at most two dimensions, of which the first varies fastest; further ones may be 1.
fn shape(mut dims: impl Iterator<Item = u64>) -> Option<(u64, u64)> {
    let columns = dims.next()?;
    let rows = dims.next().unwrap_or(1);
    dims.all(|d| d == 1).then_some((rows, columns))
}
