//! Where log lines go: standard error, as text or JSON. And where spans go, if anywhere.

use std::io::IsTerminal;

use anyhow::{Context, Result};
use tracing::Metadata;
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt, registry};

use crate::config::{Log, LogFormat};
use crate::telemetry::Telemetry;

/// Installs the process's one subscriber.
pub(crate) fn init(log: &Log, telemetry: Option<&Telemetry>) -> Result<()> {
    let filter = EnvFilter::try_new(&log.filter).with_context(|| {
        format!(
            "log.filter {:?} is no filter; one looks like info or info,runtime=debug",
            log.filter
        )
    })?;
    // A line that cannot be written is lost: telling that on the same standard error would panic.
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    let lines = match log.format {
        LogFormat::Text => lines
            .with_ansi(std::io::stderr().is_terminal())
            .with_target(false)
            .boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let spans = telemetry.map(|telemetry| telemetry.layer().with_filter(filter_fn(is_own_life)));
    // A line says all by itself.
    let filter = filter.and(filter_fn(|metadata| !metadata.is_span()));
    registry()
        .with(lines.with_filter(filter))
        .with(spans)
        .try_init()
        .map_err(|error| anyhow::anyhow!("log: {error}"))
}

/// What the composition does at start. Requests are traced from their histories and not from here.
fn is_own_life(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    *metadata.level() <= tracing::Level::INFO && (target == "innkeeper" || target.starts_with("innkeeper::"))
}
