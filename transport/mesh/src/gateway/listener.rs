//! Takes connections, and owns every link that comes of them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quinn::{Endpoint, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::complaints::Complaints;
use crate::config::Config;
use crate::gateway::hello::serve;
use crate::gateway::registry::Registry;
use crate::gateway::{GatewayLinks, GatewayNode};
use crate::link::{CloseCode, LastWords};

/// What the listener and its connections share.
pub(super) struct Shared {
    pub(super) node: GatewayNode,
    pub(super) config: Config,
    pub(super) links: Arc<dyn GatewayLinks>,
    pub(super) registry: Arc<Registry>,
    pub(super) last_number: AtomicU64,
    pub(super) counts: Arc<Counts>,
    pub(super) complaints: Complaints,
    pub(super) stop: CancellationToken,
    pub(super) last_words: Arc<LastWords>,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) links: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) turned_away: AtomicU64,
}

/// Figures of a listener, since it started.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct ListenerStats {
    /// Links that came up.
    pub links: u64,
    /// Connections that came to nothing: not authenticated, or no hello in time.
    pub failed: u64,
    /// Workers that were refused with a reason.
    pub refused: u64,
    /// Connections turned away because too many others had not said hello yet.
    pub turned_away: u64,
}

/// Where a listener's figures can be read, even when it has ended. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ListenerFigures(Arc<Counts>);

impl ListenerFigures {
    /// The figures now.
    #[must_use]
    pub fn read(&self) -> ListenerStats {
        let counts = &self.0;
        ListenerStats {
            links: counts.links.load(Ordering::Relaxed),
            failed: counts.failed.load(Ordering::Relaxed),
            refused: counts.refused.load(Ordering::Relaxed),
            turned_away: counts.turned_away.load(Ordering::Relaxed),
        }
    }
}

/// A gateway's door for workers. Dropping it ends every link at once; [`Listener::stop`] ends them in order.
#[derive(Debug)]
pub struct Listener {
    task: JoinHandle<()>,
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
        let (last_number, counts) = (AtomicU64::new(0), Arc::default());
        let shared = Arc::new(Shared {
            node,
            config,
            links,
            registry,
            last_number,
            counts,
            complaints: Complaints::default(),
            stop: CancellationToken::new(),
            last_words: Arc::new(LastWords::new("the gateway is gone")),
        });
        let task = tokio::spawn(listen(endpoint.clone(), Arc::clone(&shared)));
        Self {
            task,
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
        self.figures().read()
    }

    /// Its figures, for whoever does not have the listener.
    #[must_use]
    pub fn figures(&self) -> ListenerFigures {
        ListenerFigures(Arc::clone(&self.shared.counts))
    }

    /// Takes no new connection, delivers what is queued on the links (for at most the flush deadline), and ends them; each peer is
    /// told that this is an end in order. Every link's `Down` has been said when it returns, which is within four times the flush
    /// deadline.
    pub async fn stop(mut self) {
        self.shared.stop.cancel();
        // The task's own waits have deadlines; this one only bounds their sum.
        let bound = self.shared.config.flush_deadline * 4;
        if timeout(bound, &mut self.task).await.is_err() {
            warn!("the listener did not end in time");
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
        let words = self.shared.last_words.get();
        self.endpoint.close(CloseCode::Gone.number(), words.as_bytes());
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
async fn listen(endpoint: Endpoint, shared: Arc<Shared>) {
    let pending = Arc::new(Semaphore::new(shared.config.max_pending));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => break,
            Some(_) = connections.join_next() => {}
            incoming = endpoint.accept() => {
                let Some(incoming) = incoming else {
                    error!("the endpoint is gone: no worker can be linked any more");
                    break;
                };
                if let Some((incoming, place)) = admit(&shared, &pending, incoming) {
                    connections.spawn(serve(Arc::clone(&shared), incoming, place));
                }
            }
        }
    }
    let drained = async {
        loop {
            tokio::select! {
                biased;
                ended = connections.join_next() => if ended.is_none() { break },
                Some(incoming) = endpoint.accept() => incoming.refuse(),
            }
        }
    };
    let _ = timeout(shared.config.flush_deadline * 2, drained).await;
    connections.shutdown().await;
    endpoint.close(CloseCode::Stopped.number(), b"the gateway stops");
    // So that the peers hear of it.
    let _ = timeout(shared.config.flush_deadline, endpoint.wait_idle()).await;
}

/// Whether a connection is looked at now, with its place among those that have not said hello. Where more than half of the places
/// are taken, only a caller has one that answers from where it says it is: packets with false addresses must not keep workers out.
fn admit(
    shared: &Shared,
    pending: &Arc<Semaphore>,
    incoming: Incoming,
) -> Option<(Incoming, OwnedSemaphorePermit)> {
    let crowded = pending.available_permits() <= shared.config.max_pending / 2;
    if crowded && !incoming.remote_address_validated() {
        // One that has been asked before is validated, or is none.
        let _ = incoming.retry();
        return None;
    }
    match Arc::clone(pending).try_acquire_owned() {
        Ok(place) => Some((incoming, place)),
        Err(_) => {
            shared.counts.turned_away.fetch_add(1, Ordering::Relaxed);
            incoming.refuse();
            None
        }
    }
}
