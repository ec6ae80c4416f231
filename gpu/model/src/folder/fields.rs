//! Objects of JSON whose values have to be of a type.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde_json::{Map, Value};

use super::{FolderError, TEXT_BYTES};

/// The object that a file holds, or a part of it.
#[derive(Clone, Debug)]
pub(crate) struct Fields {
    file: &'static str,
    /// In front of keys, in errors.
    above: String,
    map: Map<String, Value>,
}

impl Fields {
    /// Of a file that is not there.
    pub(super) fn none(file: &'static str) -> Self {
        Self {
            file,
            above: String::new(),
            map: Map::new(),
        }
    }

    /// What `key` has, unless it is null.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// Whether something is said about `key`, and be it null.
    pub(crate) fn says(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    pub(crate) fn unsigned(&self, key: &str) -> Result<u64, FolderError> {
        self.needed(key, "an unsigned number", Value::as_u64)
    }

    pub(crate) fn float(&self, key: &str) -> Result<f64, FolderError> {
        self.needed(key, "a number", Value::as_f64)
    }

    pub(crate) fn text(&self, key: &str) -> Result<&str, FolderError> {
        self.needed(key, "a text", Value::as_str)
    }

    pub(crate) fn unsigned_or(&self, key: &str, other: u64) -> Result<u64, FolderError> {
        self.get(key).map_or(Ok(other), |_| self.unsigned(key))
    }

    pub(crate) fn float_or(&self, key: &str, other: f64) -> Result<f64, FolderError> {
        self.get(key).map_or(Ok(other), |_| self.float(key))
    }

    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, FolderError> {
        let flag = |_| self.needed(key, "a truth value", Value::as_bool);
        self.get(key).map(flag).transpose()
    }

    /// The object below `key`, if there is one.
    pub(crate) fn below(&self, key: &str) -> Result<Option<Self>, FolderError> {
        if self.get(key).is_none() {
            return Ok(None);
        }
        let map = self.needed(key, "an object", Value::as_object)?;
        Ok(Some(Self {
            file: self.file,
            above: format!("{}{key}.", self.above),
            map: map.clone(),
        }))
    }

    /// The texts below `key`, if there are any.
    pub(crate) fn texts(&self, key: &str) -> Result<Option<Vec<&str>>, FolderError> {
        let all =
            |value: &'_ Value| -> Option<()> { value.as_array()?.iter().all(Value::is_string).then_some(()) };
        if self.get(key).is_none() {
            return Ok(None);
        }
        self.needed(key, "a list of texts", all)?;
        let list = self.get(key).and_then(Value::as_array);
        Ok(list.map(|list| list.iter().filter_map(Value::as_str).collect()))
    }

    /// The number below `key`, or the numbers of a list; of none, or of something else, nothing.
    pub(crate) fn numbers(&self, key: &str) -> Vec<u64> {
        match self.get(key) {
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_u64).collect(),
            Some(value) => value.as_u64().into_iter().collect(),
            None => Vec::new(),
        }
    }

    /// The spelling of a special token: a text, or an object that has it as `content`.
    pub(crate) fn token(&self, key: &str) -> Option<&str> {
        let value = self.get(key)?;
        value.as_str().or_else(|| value.get("content")?.as_str())
    }

    /// The chat template of `tokenizer_config.json`: a text, or that called `default` of several.
    pub(super) fn chat_template(&self) -> Result<Option<String>, FolderError> {
        const KEY: &str = "chat_template";
        let Some(Value::Array(several)) = self.get(KEY) else {
            let text = |_| self.text(KEY).map(str::to_owned);
            return self.get(KEY).map(text).transpose();
        };
        let default = several
            .iter()
            .find(|one| one.get("name").and_then(Value::as_str) == Some("default"));
        let text = default.and_then(|one| one.get("template")?.as_str());
        text.map(|text| Some(text.to_owned()))
            .ok_or_else(|| self.wrong(KEY, "a text, or a list with one called `default`"))
    }

    fn needed<'a, T: 'a>(
        &'a self,
        key: &str,
        expected: &'static str,
        as_type: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<T, FolderError> {
        let value = self.map.get(key).and_then(as_type);
        value.ok_or_else(|| self.wrong(key, expected))
    }

    /// An error about `key`.
    pub(crate) fn wrong(&self, key: &str, expected: &'static str) -> FolderError {
        const SHOWN: usize = 80;
        let found = self
            .map
            .get(key)
            .map_or_else(|| "missing".to_owned(), Value::to_string);
        let cut = found.char_indices().nth(SHOWN).map_or(found.len(), |(at, _)| at);
        FolderError::Field {
            file: self.file,
            key: format!("{}{key}", self.above),
            expected,
            found: found[..cut].to_owned(),
        }
    }
}

/// The object in the file `name`, if the file is there.
pub(super) fn read_fields(folder: &Path, name: &'static str) -> Result<Option<Fields>, FolderError> {
    let Some(bytes) = read_file(folder, name)? else {
        return Ok(None);
    };
    let map = serde_json::from_slice(&bytes).map_err(|e| FolderError::Damaged {
        path: folder.join(name),
        what: e.to_string(),
    })?;
    Ok(Some(Fields {
        file: name,
        above: String::new(),
        map,
    }))
}

/// The bytes of the file `name`, if it is there.
pub(super) fn read_file(folder: &Path, name: &str) -> Result<Option<Vec<u8>>, FolderError> {
    let path = folder.join(name);
    let failed = |source| FolderError::Io {
        path: path.clone(),
        source,
    };
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    let read = file
        .take(TEXT_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if read as u64 > TEXT_BYTES {
        return Err(FolderError::Damaged {
            path: path.clone(),
            what: format!("is longer than the {TEXT_BYTES} bytes allowed"),
        });
    }
    Ok(Some(bytes))
}
