//! One value for one key, and where it was written.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};

/// What the names of our environment variables begin with.
pub(crate) const ENVIRONMENT: &str = "INNKEEPER_";

/// A value for a key.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// `section.name`.
    pub(super) key: String,
    pub(super) given: Given,
    pub(super) origin: Origin,
}

/// A value as it was given.
#[derive(Clone, Debug)]
pub(super) enum Given {
    /// With a type of its own.
    Value(toml::Value),
    /// As text, whose type is that of its key.
    Text(String),
}

/// Where a value was written.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// In the configuration file.
    File(PathBuf),
    /// In an environment variable: its name and value.
    Environment(String, String),
    /// In a flag, as the user wrote it.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment(name, value) => write!(f, "{name}={value}"),
            Self::Flag(text) => f.write_str(text),
        }
    }
}

impl Setting {
    /// The value of a flag that stands for one key.
    pub(crate) fn flag(flag: &str, key: &str, value: toml::Value) -> Self {
        let origin = Origin::Flag(match &value {
            toml::Value::String(text) => format!("{flag} {text}"),
            _ => flag.to_owned(),
        });
        Self {
            key: key.to_owned(),
            given: Given::Value(value),
            origin,
        }
    }

    /// What was given with `--set`.
    ///
    /// # Errors
    /// If it has no `=`.
    pub(crate) fn set(pair: &str) -> Result<Self> {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| anyhow!("--set {pair}: write it as KEY=VALUE, such as worker.slots=8"))?;
        Ok(Self {
            key: key.trim().to_owned(),
            given: Given::Text(value.trim().to_owned()),
            origin: Origin::Flag(format!("--set {pair}")),
        })
    }
}

/// What a configuration file says.
pub(super) fn of_file(file: &Path) -> Result<Vec<Setting>> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("the configuration file {} cannot be read", file.display()))?;
    let table: toml::Table = text
        .parse()
        .with_context(|| format!("the configuration file {}", file.display()))?;
    let setting = |key, value| Setting {
        key,
        given: Given::Value(value),
        origin: Origin::File(file.to_owned()),
    };
    let mut settings = Vec::new();
    for (section, value) in table {
        match value {
            toml::Value::Table(names) => {
                let of_section = names.into_iter();
                settings.extend(of_section.map(|(name, value)| setting(format!("{section}.{name}"), value)));
            }
            value => settings.push(setting(section, value)),
        }
    }
    Ok(settings)
}

/// What the environment says: `INNKEEPER_SECTION__NAME=VALUE`.
pub(super) fn of_environment(variables: impl Iterator<Item = (OsString, OsString)>) -> Result<Vec<Setting>> {
    let mut settings = Vec::new();
    for (name, value) in variables {
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(ENVIRONMENT)) else {
            continue;
        };
        // `INNKEEPER_CONFIG` names the file itself: the command line has read it.
        if rest == "CONFIG" || is_service_link(rest) {
            continue;
        }
        let value = value
            .into_string()
            .map_err(|_| anyhow!("{ENVIRONMENT}{rest} is not in UTF-8"))?;
        settings.push(Setting {
            key: rest.to_lowercase().replace("__", "."),
            given: Given::Text(value.trim().to_owned()),
            origin: Origin::Environment(format!("{ENVIRONMENT}{rest}"), value),
        });
    }
    Ok(settings)
}

/// Kubernetes describes a Service called `innkeeper` to every pod in such variables (`INNKEEPER_SERVICE_HOST`,
/// `INNKEEPER_PORT_8080_TCP`): nobody has configured anything with them.
fn is_service_link(rest: &str) -> bool {
    !rest.contains("__") && rest.split('_').any(|word| matches!(word, "SERVICE" | "PORT"))
}

impl Given {
    /// The value; text becomes what the key's other value is, as far as it can.
    pub(super) fn of_the_type_of(self, other: &toml::Value) -> toml::Value {
        let text = match self {
            Self::Value(value) => return value,
            Self::Text(text) => text,
        };
        let parsed = format!("value = {text}").parse::<toml::Table>().ok();
        let parsed = parsed
            .filter(|table| table.len() == 1)
            .and_then(|mut table| table.remove("value"));
        match (parsed, other) {
            (Some(value), other) if value.same_type(other) => value,
            // Needs no quotes, even where it looks like a number.
            (_, toml::Value::String(_)) => toml::Value::String(text),
            (_, toml::Value::Array(_)) => {
                let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                toml::Value::Array(parts.map(|part| part.to_owned().into()).collect())
            }
            (Some(value), _) => value,
            (None, _) => toml::Value::String(text),
        }
    }
}
