//! The typed configuration: one TOML file, then the environment, then flags, in order of growing precedence. Read in one place,
//! once; nothing else in the program looks at the environment.

mod check;
mod nearest;
mod sections;
mod setting;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

#[cfg(feature = "faults")]
pub(crate) use sections::Faults;
pub(crate) use sections::{
    Admin, Api, Limits, Log, LogFormat, Mesh, Mock, Model, Node, Tracing, TracingProtocol, Ucx, Worker,
    WorkerDevice, WorkerNumerics, WorkerRole,
};
pub(crate) use setting::{ENVIRONMENT, Origin, Setting};

/// Everything that can be set. Every field has a safe default; `innkeeper config` prints the effective values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) node: Node,
    pub(crate) model: Model,
    pub(crate) api: Api,
    pub(crate) admin: Admin,
    pub(crate) mesh: Mesh,
    pub(crate) limits: Limits,
    pub(crate) worker: Worker,
    pub(crate) mock: Mock,
    pub(crate) ucx: Ucx,
    pub(crate) log: Log,
    pub(crate) tracing: Tracing,
    /// Only test builds have it.
    #[cfg(feature = "faults")]
    pub(crate) faults: Faults,
}

impl Config {
    /// Merges file, environment and flags.
    ///
    /// # Errors
    /// For a file that cannot be read, an unknown key, or a value of the wrong type or range; the error names the key, where the
    /// value came from, and what would be right.
    pub(crate) fn load(file: Option<&Path>, flags: Vec<Setting>) -> Result<Self> {
        let mut settings = match file {
            Some(file) => setting::of_file(file)?,
            None => Vec::new(),
        };
        settings.extend(setting::of_environment(std::env::vars_os())?);
        settings.extend(flags);
        Self::merge(settings)
    }

    /// The defaults with these settings, the later ones over the earlier.
    fn merge(settings: Vec<Setting>) -> Result<Self> {
        let mut table = Self::default().to_table()?;
        let mut config = Self::default();
        let mut origins = BTreeMap::new();
        for Setting { key, given, origin } in settings {
            let Some(place) = place(&mut table, &key) else {
                bail!(
                    "{key} ({origin}): there is no such key{}",
                    nearest::hint(&key, &origin)
                );
            };
            *place = given.of_the_type_of(place);
            // One at a time: what fails now is this one's fault.
            config = match Self::deserialize(table.clone()) {
                Ok(config) => config,
                Err(error) => bail!("{key} ({origin}): {}", explained(error.message().trim())),
            };
            origins.insert(key, origin);
        }
        if let Err(broken) = config.check() {
            let from = origins
                .get(broken.key)
                .map(|origin| format!(" ({origin})"))
                .unwrap_or_default();
            bail!(
                "{} is {}{from}: it must be {}",
                broken.key,
                broken.value,
                broken.rule
            );
        }
        Ok(config)
    }

    /// The effective configuration, as a file that would give it again.
    pub(crate) fn to_toml(&self) -> Result<String> {
        toml::to_string(self).context("configuration")
    }

    fn to_table(&self) -> Result<toml::Table> {
        toml::Table::try_from(self).context("configuration")
    }

    /// Every key, as `section.name`.
    fn keys() -> Vec<String> {
        let sections = Self::default().to_table().unwrap_or_default();
        let names = |(section, value): (&String, &toml::Value)| {
            let names = value.as_table().into_iter().flat_map(toml::Table::keys);
            names.map(|name| format!("{section}.{name}")).collect::<Vec<_>>()
        };
        sections.iter().flat_map(names).collect()
    }
}

/// What is wrong with a value, and what would be right where that is not said.
fn explained(error: &str) -> String {
    match error {
        "invalid socket address syntax" => {
            "write an address as IP:PORT, such as 127.0.0.1:8080 or 0.0.0.0:8080".to_owned()
        }
        "invalid IP address syntax" => "write an IP address, such as 127.0.0.1".to_owned(),
        other => other.to_owned(),
    }
}

/// Where the value of a key is.
fn place<'a>(table: &'a mut toml::Table, key: &str) -> Option<&'a mut toml::Value> {
    let (section, name) = key.split_once('.')?;
    table.get_mut(section)?.as_table_mut()?.get_mut(name)
}

#[cfg(test)]
mod tests;
