//! The transfer as the rest of the program sees it.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use kv::{
    EventSink, KvError, KvEvent, KvMemory, KvTransfer, Offer, Read, ReadId, SourceAddress, Totals,
    TransferKey, Withdrawal,
};

use crate::{
    OpenError, Ucx, UcxConfig,
    engine::Engine,
    region::Region,
    shared::{Shared, StopGuard},
};

const SCHEME: &str = "ucx:";
/// How long UCX may take to start; longer means that it hangs.
const START_LIMIT: Duration = Duration::from_secs(30);

/// KV moves over UCX. Its progress thread ends when the value is dropped.
///
/// UCX's sockets stay open in processes that this one starts: a program that has both starts its children first, or
/// closes what they inherit.
pub struct UcxTransfer {
    shared: Arc<Shared>,
    memory: Arc<dyn KvMemory>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

/// Why a transfer could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// UCX would not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The system gave no thread or descriptor.
    #[error("cannot start the UCX thread: {0}")]
    Io(#[from] io::Error),
    /// UCX did not come up in time.
    #[error("UCX did not start within {} s", START_LIMIT.as_secs())]
    Hung,
}

impl UcxTransfer {
    /// Opens UCX on a thread of its own, listening on `config.bind`, for transfers from and into `memory`.
    pub fn start(
        ucx: &Ucx,
        config: UcxConfig,
        memory: Arc<dyn KvMemory>,
        sink: EventSink,
    ) -> Result<Self, StartError> {
        let shared = Arc::new(Shared::new(memory.as_ref(), sink)?);
        let (tell, told) = mpsc::sync_channel(1);
        let thread = {
            let (ucx, shared, region) = (ucx.clone(), shared.clone(), Region::new(memory.clone()));
            let body = move || {
                // Dropped after the engine, and with it after UCX.
                let _guard = StopGuard(shared.clone());
                let engine = Engine::open(ucx, &config, region, shared);
                let address = engine.as_ref().map(Engine::address).map_err(Clone::clone);
                // Nobody listens any more after `START_LIMIT`.
                if let (Ok(()), Ok(engine)) = (tell.send(address), engine) {
                    engine.run();
                }
            };
            thread::Builder::new().name("kv-ucx".into()).spawn(body)?
        };
        let address = told.recv_timeout(START_LIMIT).map_err(|_| StartError::Hung)??;
        Ok(Self {
            shared,
            memory,
            address,
            thread: Some(thread),
        })
    }
}

fn parse(address: &SourceAddress) -> Result<SocketAddr, KvError> {
    std::str::from_utf8(&address.0)
        .ok()
        .and_then(|text| text.strip_prefix(SCHEME)?.parse().ok())
        .ok_or_else(|| KvError::BadAddress(format!("{address:?}, must be {SCHEME}<ip>:<port>")))
}

impl KvTransfer for UcxTransfer {
    fn address(&self) -> SourceAddress {
        SourceAddress(format!("{SCHEME}{}", self.address).into_bytes())
    }

    fn offer(&self, offer: Offer) -> Result<(), KvError> {
        self.shared.state().account.offers.insert(offer)
    }

    fn withdraw(&self, key: TransferKey) {
        let found = self.shared.state().account.offers.withdraw(key);
        if found == Withdrawal::Done {
            self.shared.emit(KvEvent::Withdrawn { key });
        }
    }

    fn read(&self, read: Read) -> Result<(), KvError> {
        let from = parse(&read.source)?;
        self.shared.accept(read, from, self.memory.as_ref())
    }

    fn cancel(&self, id: ReadId) {
        self.shared.cancel(id);
    }

    fn totals(&self) -> Totals {
        self.shared.state().account.totals()
    }
}

impl Drop for UcxTransfer {
    fn drop(&mut self) {
        self.shared.ask_stop();
        let Some(thread) = self.thread.take() else { return };
        // An event handler may hold the last reference: a thread cannot wait for itself.
        if thread.thread().id() != thread::current().id() {
            let _ = thread.join();
        }
    }
}
