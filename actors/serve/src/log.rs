//! Where log lines go: standard error, as text or JSON.

use std::io::IsTerminal;

use anyhow::{Context, Result};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::config::{Log, LogFormat};

/// Installs the process's one subscriber.
pub(crate) fn init(log: &Log) -> Result<()> {
    let filter = EnvFilter::try_new(&log.filter).with_context(|| {
        format!(
            "log.filter {:?} is no filter; one looks like info or info,runtime=debug",
            log.filter
        )
    })?;
    // A line that cannot be written is lost: telling that on the same standard error would panic.
    let builder = fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    let installed = match log.format {
        LogFormat::Text => builder
            .with_ansi(std::io::stderr().is_terminal())
            .with_target(false)
            .try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    installed.map_err(|error| anyhow::anyhow!("log: {error}"))
}
