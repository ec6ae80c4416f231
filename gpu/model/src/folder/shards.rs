//! The weights of a model: one file of safetensors, or several and an index of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use super::FolderError;
use super::fields::read_file;
use super::tensors::{Extent, Safetensors};

const WHOLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
/// Most files of one model.
const FILES: usize = 1 << 10;

/// A tensor of a model.
#[derive(Debug)]
pub(crate) struct Place {
    /// The file, by its number.
    file: usize,
    pub(crate) extent: Extent,
}

/// All files with weights, open.
#[derive(Debug)]
pub(super) struct Shards {
    files: Vec<Safetensors>,
    tensors: BTreeMap<String, Place>,
}

impl Shards {
    pub(super) fn open(folder: &Path) -> Result<Self, FolderError> {
        let Some(index) = read_file(folder, INDEX)? else {
            return Self::of(vec![Safetensors::open(&folder.join(WHOLE))?]);
        };
        let damaged = |what: String| FolderError::Damaged {
            path: folder.join(INDEX),
            what,
        };
        let index: Index = serde_json::from_slice(&index).map_err(|e| damaged(e.to_string()))?;
        let names: BTreeSet<&str> = index.weight_map.values().map(String::as_str).collect();
        if names.len() > FILES {
            return Err(damaged(format!(
                "{} files, more than the {FILES} allowed",
                names.len()
            )));
        }
        // A name leads nowhere else.
        if let Some(name) = names.iter().find(|name| !plain(name)) {
            return Err(damaged(format!(
                "`{name}` is not the name of a file in this folder"
            )));
        }
        let files: Result<_, _> = names
            .iter()
            .map(|name| Safetensors::open(&folder.join(name)))
            .collect();
        let shards = Self::of(files?)?;
        for (tensor, file) in &index.weight_map {
            let place = shards.tensors.get(tensor);
            if place.is_none_or(|place| shards.files[place.file].path() != folder.join(file)) {
                return Err(damaged(format!(
                    "tensor `{tensor}` should be in {file}, and is not"
                )));
            }
        }
        Ok(shards)
    }

    fn of(files: Vec<Safetensors>) -> Result<Self, FolderError> {
        let mut tensors = BTreeMap::new();
        for (number, file) in files.iter().enumerate() {
            for extent in file.tensors() {
                let place = Place {
                    file: number,
                    extent: extent.clone(),
                };
                if tensors.insert(extent.name.clone(), place).is_some() {
                    return Err(FolderError::Damaged {
                        path: file.path().to_owned(),
                        what: format!("tensor `{}` is in another file as well", extent.name),
                    });
                }
            }
        }
        Ok(Self { files, tensors })
    }

    pub(super) fn tensor(&self, name: &str) -> Option<&Place> {
        self.tensors.get(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    pub(super) fn read(&self, place: &Place, into: &mut Vec<u8>) -> Result<(), FolderError> {
        self.files[place.file].read(&place.extent, into)
    }
}

/// What `model.safetensors.index.json` says.
#[derive(Deserialize)]
struct Index {
    /// The file of every tensor.
    weight_map: BTreeMap<String, String>,
}

/// Whether this is the name of a file and no path.
fn plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let normal = matches!(parts.next(), Some(std::path::Component::Normal(part)) if part == name);
    normal && parts.next().is_none()
}
