//! One fetch at a time, over all processes: a lock the system gives back when its holder dies, however it dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::silence::{LOOK, Silence};
use crate::{PypiError, at};

/// Held until dropped. The file stays: removing it could take a lock away that another process has just got.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock at `path`, as long as its holder gets on: `look` says how far it is, and may stay the same for as long as `busy`.
    /// A holder that gets on ends by its own limits.
    ///
    /// # Errors
    /// If its holder does not get on, or the file cannot be had.
    pub fn acquire(path: &Path, busy: Duration, look: &mut dyn FnMut() -> u64) -> Result<Self, PypiError> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(at(path))?;
        let mut silence = Silence::new(busy);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(source)) => return Err(at(path)(source)),
                Err(TryLockError::WouldBlock) if silence.too_long(look()) => {
                    return Err(PypiError::Busy(path.to_owned()));
                }
                Err(TryLockError::WouldBlock) => thread::sleep(LOOK),
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
        let first = Lock::acquire(&path, Duration::ZERO, &mut || 0).unwrap();
        let mut look = || {
            looked += 1;
            0
        };
        let second = Lock::acquire(&path, Duration::from_millis(50), &mut look);
        assert!(matches!(second, Err(PypiError::Busy(_))));
        assert!(looked > 0);
        drop(first);
        Lock::acquire(&path, Duration::ZERO, &mut || 0).unwrap();
    }

    #[test]
    fn a_holder_that_gets_on_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let mut first = Some(Lock::acquire(&path, Duration::ZERO, &mut || 0).unwrap());
        // Ten looks are longer than `busy`.
        let mut far = 0;
        let mut look = || {
            far += 1;
            if far == 10 {
                first = None;
            }
            far
        };
        Lock::acquire(&path, 3 * LOOK, &mut look).unwrap();
    }
}
