//! Finds the gateways' addresses, and owns one dialling task for each.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use quinn::{ClientConfig, Endpoint};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use wire::Hello;

use crate::config::Config;
use crate::link::CLOSED;
use crate::worker::dial::keep_linked;
use crate::worker::status::Board;
use crate::worker::{DialState, DialStatus, Target, WorkerLinks};

/// What a dialer and its tasks share.
pub(super) struct Shared {
    pub(super) endpoint: Endpoint,
    pub(super) client: ClientConfig,
    pub(super) hello: Hello,
    pub(super) links: Arc<dyn WorkerLinks>,
    pub(super) config: Config,
    pub(super) board: Board,
    pub(super) last_number: AtomicU64,
    pub(super) stop: CancellationToken,
}

/// A worker's links to its gateways. Dials for ever, with backoff; a link that ends is dialled again. Dropping it ends
/// every link at once; [`Dialer::stop`] ends them in order.
pub struct Dialer {
    task: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

impl Dialer {
    /// Dials every address of every target from now on. The endpoint is the dialer's: it is closed with it. Must be called within a tokio runtime.
    #[must_use]
    pub fn start(
        endpoint: Endpoint,
        client: ClientConfig,
        targets: Vec<Target>,
        hello: Hello,
        links: Arc<dyn WorkerLinks>,
        config: Config,
    ) -> Self {
        let (board, last_number, stop) = (Board::default(), AtomicU64::new(0), CancellationToken::new());
        let shared = Arc::new(Shared {
            endpoint,
            client,
            hello,
            links,
            config,
            board,
            last_number,
            stop,
        });
        let task = tokio::spawn(follow(Arc::clone(&shared), targets));
        Self {
            task: Some(task),
            shared,
        }
    }

    /// Every address that is dialled, and how it stands, in order.
    #[must_use]
    pub fn status(&self) -> Vec<DialStatus> {
        self.shared.board.snapshot()
    }

    /// Delivers what is queued on the links (for at most the flush deadline), ends them, and dials no more. Every
    /// link's `Down` has been said when it returns.
    pub async fn stop(mut self) {
        self.shared.stop.cancel();
        if let Some(task) = self.task.take() {
            // The task's own waits have deadlines; this one only bounds their sum.
            let bound = self.shared.config.flush_deadline * 4;
            if timeout(bound, task).await.is_err() {
                debug!("the dialer did not end in time");
            }
        }
    }
}

impl Drop for Dialer {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
        self.shared.endpoint.close(CLOSED, b"the worker is gone");
    }
}

impl std::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialer")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

/// Owns the dialling tasks: they end with this one.
async fn follow(shared: Arc<Shared>, targets: Vec<Target>) {
    let ipv6 = shared
        .endpoint
        .local_addr()
        .is_ok_and(|address| address.is_ipv6());
    let mut tasks = JoinSet::new();
    let mut dialled: BTreeMap<SocketAddr, AbortHandle> = BTreeMap::new();
    let mut unknown: BTreeSet<Target> = BTreeSet::new();
    loop {
        let wanted = tokio::select! {
            biased;
            () = shared.stop.cancelled() => break,
            wanted = addresses(&shared, &targets, ipv6, &mut unknown) => wanted,
        };
        forget_gone(&shared, &mut dialled, &wanted);
        while tasks.try_join_next().is_some() {}
        for address in wanted.addresses {
            dialled
                .entry(address)
                .or_insert_with(|| tasks.spawn(keep_linked(Arc::clone(&shared), address)));
        }
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => break,
            () = sleep(shared.config.resolve_every) => {}
        }
    }
    let drained = async { while tasks.join_next().await.is_some() {} };
    let _ = timeout(shared.config.flush_deadline * 2, drained).await;
    tasks.shutdown().await;
    shared.endpoint.close(CLOSED, b"the worker stops");
    // So that the peers hear of it.
    let _ = timeout(shared.config.flush_deadline, shared.endpoint.wait_idle()).await;
}

/// What the targets stand for now.
struct Wanted {
    addresses: BTreeSet<SocketAddr>,
    /// Whether every look-up was answered, so that what is not there is gone.
    complete: bool,
}

async fn addresses(
    shared: &Shared,
    targets: &[Target],
    ipv6: bool,
    unknown: &mut BTreeSet<Target>,
) -> Wanted {
    let mut wanted = Wanted {
        addresses: BTreeSet::new(),
        complete: true,
    };
    for target in targets {
        match target.resolve(ipv6, shared.config.resolve_deadline).await {
            Ok(found) => {
                unknown.remove(target);
                wanted.addresses.extend(found);
            }
            Err(error) => {
                wanted.complete = false;
                if unknown.insert(target.clone()) {
                    warn!(%target, error, "a gateway's name cannot be looked up; trying on");
                }
            }
        }
    }
    wanted
}

/// Stops dialling addresses that no target stands for any more. A link that is up stays, whatever a name server says:
/// only the link itself knows whether its peer is there.
fn forget_gone(shared: &Shared, dialled: &mut BTreeMap<SocketAddr, AbortHandle>, wanted: &Wanted) {
    let up: BTreeSet<SocketAddr> = shared
        .board
        .snapshot()
        .into_iter()
        .filter_map(|status| matches!(status.state, DialState::Up(_)).then_some(status.address))
        .collect();
    dialled.retain(|address, task| {
        // One that is finished died of a panic: it is dialled anew.
        let keep = !task.is_finished()
            && (!wanted.complete || wanted.addresses.contains(address) || up.contains(address));
        if !keep {
            task.abort();
            shared.board.remove(*address);
        }
        keep
    });
}
