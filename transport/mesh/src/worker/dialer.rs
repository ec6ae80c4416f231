//! Finds the gateways' addresses, and owns one dialling task for each.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use quinn::Endpoint;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::warn;
use wire::Hello;

use crate::config::Config;
use crate::link::{CloseCode, LastWords};
use crate::worker::dial::keep_linked;
use crate::worker::status::Board;
use crate::worker::{Credentials, DialState, DialStatus, Target, WorkerLinks};

/// What a dialer and its tasks share.
pub(super) struct Shared {
    pub(super) endpoint: Endpoint,
    pub(super) credentials: Credentials,
    pub(super) hello: Hello,
    pub(super) links: Arc<dyn WorkerLinks>,
    pub(super) config: Config,
    pub(super) board: Board,
    pub(super) last_number: AtomicU64,
    pub(super) stop: CancellationToken,
    pub(super) last_words: Arc<LastWords>,
}

/// A worker's links to its gateways. Dials for ever, with backoff; a link that ends is dialled again. Dropping it ends
/// every link at once, with its [last words](Dialer::last_words); [`Dialer::stop`] ends them in order.
pub struct Dialer {
    task: JoinHandle<()>,
    shared: Arc<Shared>,
}

/// What is said of a worker that says nothing else.
const GONE: &str = "the worker is gone";

impl Dialer {
    /// Dials every address of every target from now on. The endpoint is the dialer's: it is closed with it. Must be called within a tokio runtime.
    #[must_use]
    pub fn start(
        endpoint: Endpoint,
        credentials: impl Into<Credentials>,
        targets: Vec<Target>,
        hello: Hello,
        links: Arc<dyn WorkerLinks>,
        config: Config,
    ) -> Self {
        let (board, last_number, stop) = (Board::default(), AtomicU64::new(0), CancellationToken::new());
        let shared = Arc::new(Shared {
            endpoint,
            credentials: credentials.into(),
            hello,
            links,
            config,
            board,
            last_number,
            stop,
            last_words: Arc::new(LastWords::new(GONE)),
        });
        let task = tokio::spawn(follow(Arc::clone(&shared), targets));
        Self { task, shared }
    }

    /// What each peer hears as the reason if this is dropped from now on; none: that the worker is gone. QUIC cuts off what does not
    /// fit into a packet.
    pub fn last_words(&self, words: Option<Cow<'static, str>>) {
        self.shared.last_words.set(words.unwrap_or(Cow::Borrowed(GONE)));
    }

    /// Every address that is dialled, and how it stands, in order.
    #[must_use]
    pub fn status(&self) -> Vec<DialStatus> {
        self.shared.board.snapshot()
    }

    /// Delivers what is queued on the links (for at most the flush deadline), ends them, and dials no more; each peer is told that
    /// this is an end in order. Every link's `Down` has been said when it returns, which is within four times the flush deadline.
    pub async fn stop(mut self) {
        self.shared.stop.cancel();
        // The task's own waits have deadlines; this one only bounds their sum.
        let bound = self.shared.config.flush_deadline * 4;
        if timeout(bound, &mut self.task).await.is_err() {
            warn!("the dialer did not end in time");
        }
    }
}

impl Drop for Dialer {
    fn drop(&mut self) {
        self.task.abort();
        let words = self.shared.last_words.get();
        let endpoint = &self.shared.endpoint;
        endpoint.close(CloseCode::Gone.number(), words.as_bytes());
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
    // Addresses are known at once: a name server that does not answer keeps nobody from them.
    let fixed = targets.iter().filter_map(Target::address).collect();
    let mut wanted = Wanted {
        addresses: fixed,
        complete: false,
    };
    let mut pause = Duration::ZERO;
    loop {
        forget_gone(&shared, &mut dialled, &wanted);
        while tasks.try_join_next().is_some() {}
        for address in wanted.addresses {
            dialled
                .entry(address)
                .or_insert_with(|| tasks.spawn(keep_linked(Arc::clone(&shared), address)));
        }
        let looked_up = async {
            sleep(pause).await;
            addresses(&shared, &targets, ipv6, &mut unknown).await
        };
        wanted = tokio::select! {
            biased;
            () = shared.stop.cancelled() => break,
            wanted = looked_up => wanted,
        };
        pause = shared.config.resolve_every;
    }
    let drained = async { while tasks.join_next().await.is_some() {} };
    let _ = timeout(shared.config.flush_deadline * 2, drained).await;
    tasks.shutdown().await;
    shared
        .endpoint
        .close(CloseCode::Stopped.number(), b"the worker stops");
    // So that the peers hear of it.
    let _ = timeout(shared.config.flush_deadline, shared.endpoint.wait_idle()).await;
}

/// What the targets stand for now.
struct Wanted {
    addresses: BTreeSet<SocketAddr>,
    /// Whether every look-up was answered, so that what is not there is gone.
    complete: bool,
}

/// Looks all targets up at a time: the deadline of one look-up bounds them all.
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
    let mut lookups = JoinSet::new();
    for target in targets.iter().cloned() {
        let deadline = shared.config.resolve_deadline;
        lookups.spawn(async move {
            let found = target.resolve(ipv6, deadline).await;
            (target, found)
        });
    }
    // Each has its deadline.
    while let Some(looked_up) = lookups.join_next().await {
        match looked_up {
            Ok((target, Ok(found))) => {
                unknown.remove(&target);
                wanted.addresses.extend(found);
            }
            Ok((target, Err(error))) => {
                wanted.complete = false;
                if unknown.insert(target.clone()) {
                    warn!(%target, error, "a gateway's name cannot be looked up; trying on");
                }
            }
            Err(_) => wanted.complete = false,
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
