//! One fetch at a time, over all processes: a lock the system gives back when its holder dies, however it dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::{PypiError, at};

/// Between two looks at a lock that another process has.
const LOOK: Duration = Duration::from_millis(100);

/// Held until dropped. The file stays: removing it could take a lock away that another process has just got.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock at `path`, at most as long as `busy`, calling `look` meanwhile.
    ///
    /// # Errors
    /// If another process holds it for longer, or the file cannot be had.
    pub fn acquire(path: &Path, busy: Duration, look: &mut dyn FnMut()) -> Result<Self, PypiError> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(at(path))?;
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(source)) => return Err(at(path)(source)),
                Err(TryLockError::WouldBlock) if started.elapsed() > busy => {
                    return Err(PypiError::Busy(path.to_owned()));
                }
                Err(TryLockError::WouldBlock) => {
                    look();
                    thread::sleep(LOOK);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_waits_and_then_gives_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let mut looked = 0;
        let first = Lock::acquire(&path, Duration::ZERO, &mut || ()).unwrap();
        let second = Lock::acquire(&path, Duration::from_millis(50), &mut || looked += 1);
        assert!(matches!(second, Err(PypiError::Busy(_))));
        assert!(looked > 0);
        drop(first);
        Lock::acquire(&path, Duration::ZERO, &mut || ()).unwrap();
    }
}
