//! Fault switches of this process, which a test turns while the process runs. Only builds with the cargo feature `faults` have any of this.
//!
//! * the engine: slow, stuck, failing, or panicking ([`engine`]);
//! * reads of KV: failing, held before they start or before their end is told, or forged ([`kv::Faulty`]);
//! * frames of links: lost, repeated, delayed, or cut altogether ([`mesh::Faults`]);
//! * owners of requests that panic as they are born.
//!
//! A process has one set of switches, which outlives the workers that are built anew in it.

mod door;
mod engine;

use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use engine::EngineSwitch;
use kv::{EventSink, Faulty, KvMemory, KvTransfer};
use kv_ucx::UcxTransfer;
use runtime::GatewayHandle;

pub(crate) use door::open;
pub(crate) use engine::Disturbed;

/// The switches of this process.
#[derive(Default)]
pub(crate) struct Switches {
    pub(crate) mesh: Arc<mesh::Faults>,
    pub(crate) engine: EngineSwitch,
    /// Of the worker that lives.
    reads: Mutex<Weak<Faulty<UcxTransfer>>>,
    gateway: Mutex<Option<GatewayHandle>>,
}

pub(crate) static SWITCHES: LazyLock<Switches> = LazyLock::new(Switches::default);

impl Switches {
    /// Puts the switches of reads around a transfer, which `make` starts.
    pub(crate) fn around<E>(
        &self,
        memory: Arc<dyn KvMemory>,
        sink: EventSink,
        make: impl FnOnce(EventSink) -> Result<UcxTransfer, E>,
    ) -> Result<Arc<dyn KvTransfer>, E> {
        let faulty = Arc::new(Faulty::new(memory, sink, make)?);
        *self.reads.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&faulty);
        Ok(faulty)
    }

    /// There is a gateway in this process.
    pub(crate) fn gateway(&self, handle: GatewayHandle) {
        *self.gateway.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle);
    }
}
