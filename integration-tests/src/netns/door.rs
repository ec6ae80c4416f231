//! A door: connections to a port of this machine go on to the same port in a namespace.

use std::net::{SocketAddr, TcpListener};

use tokio::sync::oneshot;

use super::holder::Holder;
use crate::proxy::pass_on;

/// A door, shut when dropped.
pub(super) struct Door {
    /// Its end ends the thread.
    _open: oneshot::Sender<()>,
}

impl Door {
    pub(super) fn open(port: SocketAddr, into: &Holder) -> Result<Self, String> {
        // Made here, and so a socket of ours wherever it is used.
        let listener = TcpListener::bind(port).map_err(|error| format!("{port}: {error}"))?;
        listener
            .set_nonblocking(true)
            .map_err(|error| format!("{port}: {error}"))?;
        let (open, shut) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("a runtime: {error}"))?;
        // Not joined: it ends with the sender.
        into.run(move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
                    return;
                };
                tokio::select! {
                    biased;
                    _ = shut => {}
                    () = pass_on(listener, port) => {}
                }
            });
        })?;
        Ok(Self { _open: open })
    }
}
