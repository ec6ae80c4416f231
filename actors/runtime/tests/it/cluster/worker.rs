//! One worker under test: its switches, over all its incarnations.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use kv::{
    Faulty, Hub, InProcess, KvError, KvTransfer, Offer, Read, ReadId, SourceAddress, Totals, TransferKey,
};
use mesh::{DevCa, Faults, Target};
use mock::{Canary, MockBackend, MockConfig};
use runtime::{BuildTransfer, BuildWorker, Clock, WorkerSpec};
use wire::Role;

use super::{Gate, Setup, new_node};

/// Its switches.
pub(crate) struct WorkerUnderTest {
    pub(crate) place: usize,
    pub(crate) name: String,
    /// Stands before its engine's steps.
    pub(crate) gate: Arc<Gate>,
    /// Its actor panics at its next read.
    pub(crate) panics_at_read: AtomicBool,
    /// What its links do to the frames it sends, and whether it hears anything.
    pub(crate) faults: Arc<Faults>,
    incarnations: AtomicU64,
    transfer: Mutex<Weak<Faulty<InProcess>>>,
    canaries: Mutex<Vec<Arc<Canary>>>,
}

impl WorkerUnderTest {
    pub(super) fn new(place: usize) -> Arc<Self> {
        Arc::new(Self {
            place,
            name: format!("worker-{place}"),
            gate: Arc::default(),
            panics_at_read: AtomicBool::new(false),
            faults: Arc::default(),
            incarnations: AtomicU64::new(0),
            transfer: Mutex::default(),
            canaries: Mutex::default(),
        })
    }

    /// How often it was built.
    pub(crate) fn incarnations(&self) -> u64 {
        self.incarnations.load(Ordering::SeqCst)
    }

    /// The transfer of its present incarnation.
    pub(crate) fn transfer(&self) -> Arc<Faulty<InProcess>> {
        self.transfer.lock().unwrap().upgrade().unwrap()
    }

    pub(super) fn check_canaries(&self) {
        for canary in self.canaries.lock().unwrap().iter() {
            assert_eq!(canary.foreign(), [], "INV-01: foreign bytes at {}", self.name);
        }
    }

    pub(super) fn recipe(
        self: &Arc<Self>,
        setup: &Setup,
        ca: &Arc<DevCa>,
        hub: &Hub,
        targets: &[Target],
        clock: Clock,
    ) -> BuildWorker {
        let (this, setup, ca) = (Arc::clone(self), setup.clone(), Arc::clone(ca));
        let (hub, targets) = (hub.clone(), targets.to_vec());
        // The pool builds its workers outside of the runtime, where a socket cannot be made.
        let runtime = tokio::runtime::Handle::current();
        Arc::new(move |role: Role| {
            let _guard = runtime.enter();
            Ok(this.build(role, &setup, &ca, &hub, &targets, clock))
        })
    }

    fn build(
        self: &Arc<Self>,
        role: Role,
        setup: &Setup,
        ca: &DevCa,
        hub: &Hub,
        targets: &[Target],
        clock: Clock,
    ) -> WorkerSpec {
        let incarnation = self.incarnations.fetch_add(1, Ordering::SeqCst);
        let config = MockConfig {
            faults: (setup.engine_faults)(self.place, incarnation),
            ..setup.mock.clone()
        };
        let backend = MockBackend::new(config, self.gate.sleep()).unwrap();
        self.canaries.lock().unwrap().push(backend.canary());
        let mesh = setup.mesh(&self.faults);
        let identity = ca.issue(&self.name, &[role]).unwrap();
        WorkerSpec {
            name: self.name.clone(),
            node: new_node(),
            role,
            slots: setup.slots,
            backend: Box::new(backend),
            numerics: "mock".into(),
            start_engine: Box::new(engine::start),
            engine: engine::EngineConfig {
                chunk_tokens: 8,
                grow_ahead_tokens: 1,
                ..engine::EngineConfig::default()
            },
            transfer: self.build_transfer(hub),
            limits: setup.host_limits.clone(),
            endpoint: mesh::dial_endpoint(([127, 0, 0, 1], 0).into()).unwrap(),
            client: mesh::client_config(&identity, &mesh).unwrap().into(),
            gateways: targets.to_vec(),
            mesh,
            clock,
            admin: Some(setup.admin),
        }
    }

    fn build_transfer(self: &Arc<Self>, hub: &Hub) -> BuildTransfer {
        let (this, hub) = (Arc::clone(self), hub.clone());
        Box::new(move |pool, sink| {
            let memory: Arc<dyn kv::KvMemory> = Arc::clone(&pool) as _;
            let faulty = Faulty::new(memory, sink, |sink| InProcess::spawn(&hub, pool, sink));
            let faulty = Arc::new(faulty.map_err(|error| error.to_string())?);
            *this.transfer.lock().unwrap() = Arc::downgrade(&faulty);
            Ok(Arc::new(Panicky { faulty, worker: this }) as Arc<dyn KvTransfer>)
        })
    }
}

/// A transfer whose caller can be made to panic.
struct Panicky {
    faulty: Arc<Faulty<InProcess>>,
    worker: Arc<WorkerUnderTest>,
}

impl KvTransfer for Panicky {
    fn address(&self) -> SourceAddress {
        self.faulty.address()
    }

    fn offer(&self, offer: Offer) -> Result<(), KvError> {
        self.faulty.offer(offer)
    }

    fn withdraw(&self, key: TransferKey) {
        self.faulty.withdraw(key);
    }

    fn read(&self, read: Read) -> Result<(), KvError> {
        assert!(
            !self.worker.panics_at_read.swap(false, Ordering::SeqCst),
            "a test's panic"
        );
        self.faulty.read(read)
    }

    fn cancel(&self, id: ReadId) {
        self.faulty.cancel(id);
    }

    fn totals(&self) -> Totals {
        self.faulty.totals()
    }
}
