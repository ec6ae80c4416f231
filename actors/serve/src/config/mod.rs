//! The typed configuration: one TOML file, then the environment, then flags, in order of growing precedence. Read in one place,
//! once; nothing else in the program looks at the environment.

mod sections;

use std::path::Path;

use anyhow::{Context, Result, ensure};
use figment::Figment;
use figment::providers::{Env, Format, Serialized, Toml};
use serde::{Deserialize, Serialize};

pub(crate) use sections::{Admin, Api, Limits, Log, LogFormat, Mesh, Model, Node, Ucx, Worker, WorkerRole};

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
    pub(crate) ucx: Ucx,
    pub(crate) log: Log,
}

/// A flag's value for one key, such as (`worker.threads`, `2`).
pub(crate) type Override = (String, String);

/// More compute threads than any machine has cores.
const MOST_THREADS: usize = 1_024;

impl Config {
    /// Merges file, environment and flags.
    ///
    /// # Errors
    /// For a file that cannot be read, an unknown key, or a value of the wrong type or range; the error names the key and where
    /// the value came from.
    pub(crate) fn load(file: Option<&Path>, overrides: &[Override]) -> Result<Self> {
        let mut figment = Figment::from(Serialized::defaults(Self::default()));
        if let Some(file) = file {
            ensure!(
                file.is_file(),
                "configuration file {} does not exist",
                file.display()
            );
            figment = figment.merge(Toml::file_exact(file));
        }
        // `INNKEEPER_CONFIG` names the file itself: the command line has read it.
        figment = figment.merge(Env::prefixed("INNKEEPER_").ignore(&["CONFIG"]).split("__"));
        for (key, value) in overrides {
            figment = figment.merge(Toml::string(&flag_as_toml(key, value)?));
        }
        let config: Self = figment.extract().context("configuration")?;
        config.check()?;
        Ok(config)
    }

    /// The effective configuration, as a file that would give it again.
    pub(crate) fn to_toml(&self) -> Result<String> {
        toml::to_string(self).context("configuration")
    }

    fn check(&self) -> Result<()> {
        let worker = &self.worker;
        ensure!(
            worker.block_tokens.is_power_of_two(),
            "worker.block_tokens is {}: it must be a power of two",
            worker.block_tokens
        );
        ensure!(worker.slots >= 1, "worker.slots is 0: it must be at least 1");
        ensure!(
            worker.chunk_tokens >= 1,
            "worker.chunk_tokens is 0: it must be at least 1"
        );
        ensure!(
            worker.step_tokens >= 1,
            "worker.step_tokens is 0: it must be at least 1"
        );
        ensure!(
            worker.threads <= MOST_THREADS,
            "worker.threads is {}: it must be at most {MOST_THREADS}",
            worker.threads
        );
        let limits = &self.limits;
        ensure!(
            limits.queue_rooms >= 1,
            "limits.queue_rooms is 0: it must be at least 1"
        );
        ensure!(
            limits.attempts >= 1,
            "limits.attempts is 0: it must be at least 1"
        );
        let mesh = &self.mesh;
        ensure!(
            mesh.heartbeat_ms >= 10,
            "mesh.heartbeat_ms is {}: it must be at least 10",
            mesh.heartbeat_ms
        );
        ensure!(
            mesh.lease_ms >= 4 * mesh.heartbeat_ms,
            "mesh.lease_ms is {} and mesh.heartbeat_ms {}: a lease must outlast four heartbeats",
            mesh.lease_ms,
            mesh.heartbeat_ms
        );
        Ok(())
    }
}

/// `worker.threads`, `2` becomes a TOML document; a value that is no TOML value is taken as a string.
fn flag_as_toml(key: &str, value: &str) -> Result<String> {
    let known = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
    ensure!(
        !key.is_empty() && key.chars().all(known),
        "--set {key}={value}: a key looks like worker.threads"
    );
    let plain = format!("{key} = {value}\n");
    if plain.parse::<toml::Table>().is_ok() {
        return Ok(plain);
    }
    Ok(format!("{key} = {}\n", toml::Value::String(value.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(key: &str, value: &str) -> Result<Config> {
        Config::load(None, &[(key.to_owned(), value.to_owned())])
    }

    #[test]
    fn defaults_are_valid_and_survive_a_round_trip() {
        let config = Config::load(None, &[]).expect("the defaults load");
        let printed = config.to_toml().expect("prints");
        assert_eq!(toml::from_str::<Config>(&printed).expect("reads back"), config);
    }

    #[test]
    fn flags_win_and_strings_need_no_quotes() {
        assert_eq!(set("worker.slots", "3").expect("loads").worker.slots, 3);
        assert_eq!(set("node.name", "gw-1").expect("loads").node.name, "gw-1");
    }

    #[test]
    fn mistakes_are_named() {
        for (key, value, named) in [
            ("worker.slotz", "3", "slotz"),
            ("worker.slots", "many", "slots"),
            ("worker.block_tokens", "15", "power of two"),
            ("mesh.lease_ms", "300", "four heartbeats"),
            ("mesh.heartbeat_ms", "0", "heartbeat_ms"),
            ("limits.attempts", "0", "attempts"),
            ("worker.threads", "100000", "threads"),
            ("no key", "1", "a key looks like"),
        ] {
            let error = format!("{:#}", set(key, value).expect_err(key));
            assert!(error.contains(named), "{key}={value}: {error}");
        }
    }

    #[test]
    fn there_are_fewer_than_sixty_options() {
        let table: toml::Table = Config::default()
            .to_toml()
            .expect("prints")
            .parse()
            .expect("parses");
        let options: usize = table
            .values()
            .filter_map(toml::Value::as_table)
            .map(toml::Table::len)
            .sum();
        assert!((20..60).contains(&options), "{options} options");
    }
}
