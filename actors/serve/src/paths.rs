//! Where files are kept: fetched models and libraries, and the development authorities.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::config::Config;

/// The cache folder: from the configuration, else the platform's cache folder for this program.
pub(crate) fn cache(config: &Config) -> Result<PathBuf> {
    if !config.model.cache.is_empty() {
        return Ok(PathBuf::from(&config.model.cache));
    }
    let home = dirs::cache_dir()
        .context("no home folder, so no cache folder: give one with --set model.cache=FOLDER")?;
    Ok(home.join("innkeeper"))
}

/// Fetched models.
pub(crate) fn models(config: &Config) -> Result<PathBuf> {
    Ok(cache(config)?.join("models"))
}

/// A fetched UCX.
pub(crate) fn ucx(config: &Config) -> Result<PathBuf> {
    Ok(cache(config)?.join("ucx"))
}

/// The development authority for node links.
pub(crate) fn dev_ca(config: &Config) -> Result<PathBuf> {
    Ok(cache(config)?.join("dev-ca"))
}

/// The development authority for clients: `ca.crt` is what they are to trust.
pub(crate) fn web_ca(config: &Config) -> Result<PathBuf> {
    Ok(dev_ca(config)?.join("web"))
}
