//! Places for requests whose bodies are on their way.
//!
//! A client that keeps its body back costs a place and must not cost others their service: where all places are taken, whoever has been
//! at it for longest gives way to a new one. Those who send what they announce are gone long before.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Who is being read, in the order in which they came.
pub(crate) struct Reading {
    /// As many at once, at least one.
    most: usize,
    readers: Mutex<Readers>,
}

#[derive(Default)]
struct Readers {
    next: u64,
    /// What tells each to give way.
    open: BTreeMap<u64, Arc<Notify>>,
}

/// A place, until it is dropped.
pub(crate) struct Place<'a> {
    reading: &'a Reading,
    key: u64,
    gives_way: Arc<Notify>,
}

impl Reading {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            readers: Mutex::default(),
        }
    }

    /// Takes a place, whoever has to leave for it.
    pub(crate) fn enter(&self) -> Place<'_> {
        let mut readers = self.lock();
        if readers.open.len() >= self.most
            && let Some((_, oldest)) = readers.open.pop_first()
        {
            oldest.notify_one();
        }
        let key = readers.next;
        readers.next += 1;
        let gives_way = Arc::new(Notify::new());
        readers.open.insert(key, Arc::clone(&gives_way));
        Place {
            reading: self,
            key,
            gives_way,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Readers> {
        // Whole whoever panics: nothing here can, between two changes that belong together.
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place<'_> {
    /// Resolves when it has to be given to another.
    pub(crate) async fn gives_way(&self) {
        self.gives_way.notified().await;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.reading.lock().open.remove(&self.key);
    }
}
