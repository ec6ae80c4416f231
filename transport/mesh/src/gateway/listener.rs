//! Takes connections, and owns every link that comes of them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quinn::Endpoint;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::config::Config;
use crate::gateway::hello::serve;
use crate::gateway::registry::Registry;
use crate::gateway::{GatewayLinks, GatewayNode};
use crate::link::CLOSED;

/// What the listener and its connections share.
pub(super) struct Shared {
    pub(super) node: GatewayNode,
    pub(super) config: Config,
    pub(super) links: Arc<dyn GatewayLinks>,
    pub(super) registry: Arc<Registry>,
    pub(super) last_number: AtomicU64,
    pub(super) counts: Counts,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) links: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) turned_away: AtomicU64,
}

/// Figures of a listener, since it started.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct ListenerStats {
    /// Links that came up.
    pub links: u64,
    /// Connections that came to nothing: not authenticated, no hello in time, or refused with a reason.
    pub failed: u64,
    /// Connections turned away because too many others had not said hello yet.
    pub turned_away: u64,
}

/// A gateway's door for workers. Dropping it ends every link at once; [`Listener::stop`] ends them in order.
#[derive(Debug)]
pub struct Listener {
    task: Option<JoinHandle<()>>,
    stop: CancellationToken,
    shared: Arc<Shared>,
    endpoint: Endpoint,
}

impl Listener {
    /// Takes connections at `endpoint` from now on. The endpoint is the listener's: it is closed with it. Must be called within a tokio runtime.
    #[must_use]
    pub fn start(
        endpoint: Endpoint,
        node: GatewayNode,
        links: Arc<dyn GatewayLinks>,
        config: Config,
    ) -> Self {
        let registry = Arc::default();
        let (last_number, counts) = (AtomicU64::new(0), Counts::default());
        let shared = Arc::new(Shared {
            node,
            config,
            links,
            registry,
            last_number,
            counts,
        });
        let stop = CancellationToken::new();
        let task = tokio::spawn(listen(endpoint.clone(), Arc::clone(&shared), stop.clone()));
        Self {
            task: Some(task),
            stop,
            shared,
            endpoint,
        }
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    /// Its figures.
    #[must_use]
    pub fn stats(&self) -> ListenerStats {
        let counts = &self.shared.counts;
        ListenerStats {
            links: counts.links.load(Ordering::Relaxed),
            failed: counts.failed.load(Ordering::Relaxed),
            turned_away: counts.turned_away.load(Ordering::Relaxed),
        }
    }

    /// Takes no new connection, delivers what is queued on the links (for at most the flush deadline), and ends them.
    /// Every link's `Down` has been said when it returns.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            // The task's own waits have deadlines; this one only bounds their sum.
            let bound = self.shared.config.flush_deadline * 3 + self.shared.config.hello_deadline;
            if timeout(bound, task).await.is_err() {
                debug!("the listener did not end in time");
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
        self.endpoint.close(CLOSED, b"the gateway is gone");
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("node", &self.node)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

/// Owns the connections' tasks: they end with this one.
async fn listen(endpoint: Endpoint, shared: Arc<Shared>, stop: CancellationToken) {
    let pending = Arc::new(Semaphore::new(shared.config.max_pending));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => {}
            incoming = endpoint.accept() => {
                let Some(incoming) = incoming else { break };
                match Arc::clone(&pending).try_acquire_owned() {
                    Ok(place) => {
                        connections.spawn(serve(Arc::clone(&shared), incoming, place));
                    }
                    Err(_) => {
                        shared.counts.turned_away.fetch_add(1, Ordering::Relaxed);
                        incoming.refuse();
                    }
                }
            }
        }
    }
    for link in shared.registry.links() {
        link.finishing.cancel();
    }
    let drained = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(
        shared.config.flush_deadline + shared.config.hello_deadline,
        drained,
    )
    .await;
    connections.shutdown().await;
    endpoint.close(CLOSED, b"the gateway stops");
    // So that the peers hear of it.
    let _ = timeout(shared.config.flush_deadline, endpoint.wait_idle()).await;
}
