//! Losing frames by the name of their kind: how a test sets a fault switch of a process that it starts.

use thiserror::Error;
use wire::Kind;

use crate::config::Config;

/// Why frames cannot be lost on purpose.
#[derive(Debug, Error)]
pub enum LoseError {
    /// A build without the feature `faults`.
    #[error("this build has no fault switches: they come with the cargo feature `faults`, for tests")]
    NotBuilt,
    /// No message is called so.
    #[error("no frame is called {0:?}; names look like `close` and `heartbeat_ack`")]
    UnknownKind(String),
}

/// From now on, links made with `config` lose every frame of these kinds that this end sends.
///
/// # Errors
/// [`LoseError`]; without names there is none.
pub fn lose(config: &Config, kinds: &[String]) -> Result<(), LoseError> {
    for name in kinds {
        let kind = Kind::ALL.iter().find(|kind| kind.name() == name);
        let kind = kind.ok_or_else(|| LoseError::UnknownKind(name.clone()))?;
        lose_kind(config, *kind)?;
    }
    Ok(())
}

#[cfg(feature = "faults")]
fn lose_kind(config: &Config, kind: Kind) -> Result<(), LoseError> {
    config.faults.set(kind, Some(crate::Fault::Drop));
    tracing::warn!(%kind, "a test's fault switch: every such frame is lost");
    Ok(())
}

#[cfg(not(feature = "faults"))]
fn lose_kind(_: &Config, _: Kind) -> Result<(), LoseError> {
    Err(LoseError::NotBuilt)
}
