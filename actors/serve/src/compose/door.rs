//! A worker's one door: for operators.

use std::future::pending;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use api::{BindError, DoorLimits, Doors, DoorsConfig};
use axum::Router;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::ports::Port;

/// Connections of operators at once.
pub(super) const OPERATORS: usize = 64;

/// How long an answer under way may take when the worker ends.
const DRAIN: Duration = Duration::from_millis(500);

/// An admin listener of a node without a gateway.
pub(super) struct AdminDoor {
    address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<Result<()>>,
}

impl AdminDoor {
    /// Opens it; served until it is closed.
    pub(super) async fn open(port: Port, router: Router) -> Result<Self> {
        let config = DoorsConfig {
            plain: Some(port.address),
            limits: DoorLimits {
                connections: OPERATORS,
                drain: DRAIN,
                ..DoorLimits::default()
            },
            ..DoorsConfig::default()
        };
        let doors = Doors::bind(config).await.map_err(|error| match &error {
            BindError::Listen { source, .. } => port.refused(source),
            _ => anyhow::anyhow!("{error}"),
        })?;
        let address = doors.plain_addr().unwrap_or(port.address);
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        // Ends with `close`, or with the process.
        let task = tokio::spawn(async move {
            let served = api::serve(doors, router, pending(), stopped).await;
            served.map(|_| ()).context("the door of operators")
        });
        Ok(Self { address, stop, task })
    }

    /// Where it is.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until it ends by itself, which it must not. No deadline: to be raced against whatever else ends the process.
    pub(super) async fn failed(&mut self) -> anyhow::Error {
        match (&mut self.task).await {
            Ok(Ok(())) => anyhow::anyhow!("the door of operators was closed"),
            Ok(Err(error)) => error,
            Err(error) => error.into(),
        }
    }

    /// Closes it. The door bounds its own end.
    pub(super) async fn close(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::warn!(%error, "the door of operators");
        }
    }
}
