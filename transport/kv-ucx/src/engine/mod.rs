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
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use kv::ReadId;

use crate::{
    OpenError, Ucx, UcxConfig,
    port::{EpHandle, Port},
    region::Region,
    shared::Shared,
};
use endpoints::Endpoint;
use reading::Reading;
use serving::Serving;

/// Names an endpoint for ever, unlike its handle, which UCX uses again.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Debug)]
struct EpId(u64);

/// Names an answer to a peer's read.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Debug)]
struct ServeId(u64);

/// What an operation is for.
enum Tag {
    /// A message without data.
    Control(EpId),
    /// A piece of an answer.
    Data { ep: EpId, serve: ServeId, blocks: u32 },
    /// A piece of a read on its way into the region.
    Landing {
        ep: EpId,
        read: ReadId,
        piece: reading::Piece,
    },
    /// The end of an endpoint.
    Closed(EpId),
}

/// The thread's state.
pub(crate) struct Engine {
    ucx: Ucx,
    config: UcxConfig,
    limit: Duration,
    region: Region,
    shared: Arc<Shared>,
    /// None only while the UCX worker is being made anew.
    port: Option<Port<Tag>>,
    bound: SocketAddr,
    last_id: u64,
    endpoints: BTreeMap<EpId, Endpoint>,
    by_handle: HashMap<EpHandle, EpId>,
    dialled: BTreeMap<SocketAddr, EpId>,
    reads: BTreeMap<ReadId, Reading>,
    serves: BTreeMap<ServeId, Serving>,
    now: Instant,
    /// Whether the thread itself had been held up at the last look at the clock.
    paused: bool,
    /// Times that reads stalled since anything last came from anyone: two in a row mean that the worker itself is stuck.
    stalls: u32,
}

impl Engine {
    /// Opens UCX. To be called on the thread that runs the engine.
    pub(crate) fn open(
        ucx: Ucx,
        config: UcxConfig,
        region: Region,
        shared: Arc<Shared>,
    ) -> Result<Self, OpenError> {
        let port = Port::open(&ucx, &config, SocketAddr::new(config.bind, 0))?;
        let bound = port.address();
        shared.state().address = Some(bound);
        Ok(Self {
            ucx,
            limit: Duration::from_millis(config.no_progress_ms.max(10)),
            config,
            region,
            shared,
            port: Some(port),
            bound,
            last_id: 0,
            endpoints: BTreeMap::new(),
            by_handle: HashMap::new(),
            dialled: BTreeMap::new(),
            reads: BTreeMap::new(),
            serves: BTreeMap::new(),
            now: Instant::now(),
            paused: false,
            stalls: 0,
        })
    }

    /// Where the listener listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.bound
    }

    fn mint(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}
