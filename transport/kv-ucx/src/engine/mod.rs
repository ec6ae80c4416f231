//! The progress thread: commands in, UCX's happenings in, messages and events out.
//!
//! What is decided about a read is in [`reading`], about an answer in [`serving`], both without UCX. The rest drives:
//! `reader` and `source` are the two roles, `endpoints` the connections, `timers` the deadlines, `run` the loop.

mod endpoints;
mod reader;
mod reading;
mod run;
mod serving;
mod source;
mod timers;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use kv::ReadId;

use crate::{
    OpenError, Ucx, UcxConfig,
    port::{Context, Listener},
    region::Region,
    shared::Shared,
};
use endpoints::Endpoint;
use reading::Reading;
use serving::Serving;

/// Names an endpoint for ever.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Debug)]
struct EpId(u64);

/// Names an answer to a peer's read.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Debug)]
struct ServeId(u64);

/// What an operation is for.
enum Tag {
    /// A message without data.
    Control,
    /// A piece of an answer.
    Data { serve: ServeId, blocks: u32 },
    /// A piece of a read on its way into the region.
    Landing { read: ReadId, piece: reading::Piece },
}

/// The thread's state.
///
/// The first fields are dropped first, also by a thread that unwinds: connections before the listener that accepted
/// them, both before the context, and all of UCX before the region it may touch.
pub(crate) struct Engine {
    endpoints: BTreeMap<EpId, Endpoint>,
    listener: Listener,
    context: Rc<Context>,
    ucx: Ucx,
    no_progress_ms: u64,
    limit: Duration,
    region: Region,
    shared: Arc<Shared>,
    last_id: u64,
    dialled: BTreeMap<SocketAddr, EpId>,
    reads: BTreeMap<ReadId, Reading>,
    serves: BTreeMap<ServeId, Serving>,
    now: Instant,
    /// Whether the thread itself had been held up at the last look at the clock.
    paused: bool,
    /// Kept for its allocation.
    in_turn: Vec<EpId>,
}

impl Engine {
    /// Opens UCX. To be called on the thread that runs the engine.
    pub(crate) fn open(
        ucx: Ucx,
        config: &UcxConfig,
        region: Region,
        shared: Arc<Shared>,
    ) -> Result<Self, OpenError> {
        let context = Context::open(&ucx, config)?;
        let listener = Listener::open(&context, SocketAddr::new(config.bind, 0))?;
        Ok(Self {
            ucx,
            no_progress_ms: config.no_progress_ms,
            limit: Duration::from_millis(config.no_progress_ms.max(10)),
            region,
            shared,
            context,
            listener,
            last_id: 0,
            endpoints: BTreeMap::new(),
            dialled: BTreeMap::new(),
            reads: BTreeMap::new(),
            serves: BTreeMap::new(),
            now: Instant::now(),
            paused: false,
            in_turn: Vec::new(),
        })
    }

    /// Where the listener listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    fn mint(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}
