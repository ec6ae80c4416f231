//! A reader that a test stops in the middle of a copy, or to whose region something else happens.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use kv::{HeapMemory, InProcess, KvMemory, KvTransfer, OutOfRange};

use crate::world::{BLOCK, BLOCKS, HANG, Told, World};

/// A region whose block 4 is odd: what happens when it is written, and whether it is.
struct Odd<F>(HeapMemory, F);

impl<F: Fn() -> bool + Send + Sync + 'static> KvMemory for Odd<F> {
    fn block_bytes(&self) -> usize {
        self.0.block_bytes()
    }
    fn blocks(&self) -> u32 {
        self.0.blocks()
    }
    fn base(&self) -> *mut u8 {
        self.0.base()
    }
    fn read_into(&self, block: u32, offset: usize, bytes: &mut [u8]) -> Result<(), OutOfRange> {
        self.0.read_into(block, offset, bytes)
    }
    fn write_from(&self, block: u32, offset: usize, bytes: &[u8]) -> Result<(), OutOfRange> {
        if block == 4 && !(self.1)() {
            return Ok(());
        }
        self.0.write_from(block, offset, bytes)
    }
}

/// A reader with a thread of its own and an odd region.
pub(crate) struct OddReader {
    pub(crate) reader: InProcess,
    pub(crate) told: Told,
    pub(crate) memory: Arc<dyn KvMemory>,
}

impl OddReader {
    pub(crate) fn new(world: &World, odd: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        let told = Told::new(true);
        let memory: Arc<dyn KvMemory> = Arc::new(Odd(HeapMemory::new(BLOCKS, BLOCK), odd));
        let reader = InProcess::spawn(&world.hub, Arc::clone(&memory), told.sink()).unwrap();
        Self { reader, told, memory }
    }

    /// In the middle of read 0, of the offered blocks 1 and 2 into blocks 4 and 5. It goes on when the sender is dropped.
    pub(crate) fn half_way(world: &World) -> (Self, SyncSender<()>) {
        let (release, gate) = sync_channel::<()>(0);
        let (entered, in_copy) = sync_channel(1);
        let gate = Mutex::new(gate);
        let this = Self::new(world, move || {
            entered.send(()).unwrap();
            gate.lock().unwrap().recv().is_err()
        });
        world.offer(&[1, 2]);
        this.reader.read(world.request(0, &[4, 5])).unwrap();
        in_copy.recv_timeout(HANG).unwrap();
        (this, release)
    }
}

/// Whether a block was ever written.
pub(crate) fn is_written(memory: &dyn KvMemory, block: u32) -> bool {
    let mut bytes = vec![0; BLOCK];
    memory.read_into(block, 0, &mut bytes).unwrap();
    bytes.iter().any(|&byte| byte != 0)
}
