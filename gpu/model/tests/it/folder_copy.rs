//! Folders of models, to be changed.

use std::fs;
use std::path::Path;

use model::{Model, PoolOptions};
use serde_json::Value;
use tempfile::TempDir;

use crate::naive::Naive;
use crate::reference::directory;

/// A copy of one of the folders, to be changed.
pub(crate) struct Copy(TempDir);

impl Copy {
    pub(crate) fn of(kind: &str) -> Self {
        let to = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(directory().join(format!("folder-{kind}"))).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.path().join(entry.file_name())).unwrap();
        }
        Self(to)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Changes a file of JSON.
    pub(crate) fn edit(self, name: &str, change: impl FnOnce(&mut Value)) -> Self {
        let path = self.path().join(name);
        let mut value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut value);
        fs::write(path, serde_json::to_vec(&value).unwrap()).unwrap();
        self
    }

    pub(crate) fn set(self, key: &str, to: Value) -> Self {
        self.edit("config.json", |config| config[key] = to)
    }

    pub(crate) fn write(self, name: &str, bytes: &[u8]) -> Self {
        fs::write(self.path().join(name), bytes).unwrap();
        self
    }

    pub(crate) fn remove(self, name: &str) -> Self {
        fs::remove_file(self.path().join(name)).unwrap();
        self
    }

    /// Opens and loads it; the error's text.
    pub(crate) fn error(&self) -> String {
        let model = match Model::open(self.path()) {
            Ok(model) => model,
            Err(error) => return error.to_string(),
        };
        let pool = PoolOptions {
            blocks: 1,
            block_tokens: 16,
        };
        match model.backend(Naive::default(), pool) {
            Ok(_) => "nothing is wrong".to_owned(),
            Err(error) => error.to_string(),
        }
    }
}
