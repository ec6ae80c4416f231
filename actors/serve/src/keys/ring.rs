//! The keys that are good now, and what each has used. Changes of the file are taken over while the program runs: a key that is new is good
//! from then on, one that is gone ends what is under way with it, and whoever stays keeps what he has used.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use room::{Share, Tenant};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::Digest;
use super::file::{self, Key};
use super::meter::Meter;

/// Between two looks at the file. (Kubernetes replaces the files of a Secret by way of links, of which watchers hear nothing.)
const LOOK: Duration = Duration::from_secs(5);

/// Whoever has a key.
#[derive(Debug)]
pub(super) struct Holder {
    /// His name, for people.
    pub(super) name: String,
    digest: Digest,
    meter: Mutex<Meter>,
    /// Changes with the file, as the limits do.
    terms: Mutex<Terms>,
    /// His key is no longer in the file.
    pub(super) withdrawn: CancellationToken,
}

/// What of a key is neither name nor limit.
#[derive(Copy, Clone, Debug)]
struct Terms {
    weight: u16,
    isolate: bool,
    expires_s: Option<u64>,
}

impl Holder {
    fn new(key: &Key, now: Instant) -> Self {
        Self {
            name: key.name.clone(),
            digest: key.digest,
            meter: Mutex::new(Meter::new(key.allowance, now)),
            terms: Mutex::new(Terms::of(key)),
            withdrawn: CancellationToken::new(),
        }
    }

    pub(super) fn meter(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose turn it is when his requests wait, and what that is worth.
    pub(super) fn share(&self) -> Share {
        Share {
            tenant: Tenant(self.digest.tenant()),
            weight: self.terms().weight,
        }
    }

    /// What blocks of his prompts are called by: 0 for all who are not kept apart.
    pub(super) fn salt(&self) -> u64 {
        match self.terms().isolate {
            true => self.digest.salt(),
            false => 0,
        }
    }

    fn terms(&self) -> MutexGuard<'_, Terms> {
        self.terms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Terms {
    fn of(key: &Key) -> Self {
        Self {
            weight: key.weight,
            isolate: key.isolate,
            expires_s: key.expires_s,
        }
    }
}

/// All keys.
pub(crate) struct Ring {
    path: PathBuf,
    holders: RwLock<HashMap<Digest, Arc<Holder>>>,
}

impl Ring {
    /// Reads the file.
    ///
    /// # Errors
    /// If it cannot be read or is not right.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let ring = Self {
            path: path.to_owned(),
            holders: RwLock::default(),
        };
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("api.keys: cannot read {}", path.display()))?;
        let keys = file::read(&text).with_context(|| format!("api.keys: {}", path.display()))?;
        ring.take(&keys, Instant::now());
        Ok(ring)
    }

    /// Follows the file until `stop`. What is wrong in it is told once, and the keys stay as they were.
    pub(crate) async fn follow(self: Arc<Self>, stop: CancellationToken) {
        self.look_every(LOOK, stop).await;
    }

    async fn look_every(&self, interval: Duration, stop: CancellationToken) {
        let mut seen = tokio::fs::read_to_string(&self.path).await.ok();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = sleep(interval) => {}
            }
            let text = tokio::fs::read_to_string(&self.path).await;
            if text.as_ref().ok() == seen.as_ref() {
                continue;
            }
            let read = text.as_ref().map_err(ToString::to_string);
            let read = read.and_then(|text| file::read(text).map_err(|error| error.to_string()));
            let path = self.path.display();
            match read {
                Ok(keys) => {
                    self.take(&keys, Instant::now());
                    info!(%path, keys = keys.len(), "the file of keys has changed");
                }
                Err(error) => warn!(%path, error, "the file of keys is not right: keys stay as they were"),
            }
            seen = text.ok();
        }
    }

    /// These keys are good, and no others.
    fn take(&self, keys: &[Key], now: Instant) {
        let mut holders = self.holders.write().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *holders);
        for key in keys {
            // Under another name it is somebody else's.
            let stays = before
                .get(&key.digest)
                .is_some_and(|holder| holder.name == key.name);
            let known = stays.then(|| before.remove(&key.digest)).flatten();
            let holder = known.unwrap_or_else(|| Arc::new(Holder::new(key, now)));
            holder.meter().allow(key.allowance);
            *holder.terms() = Terms::of(key);
            holders.insert(key.digest, holder);
        }
        for gone in before.into_values() {
            info!(key = gone.name, "a key is withdrawn");
            gone.withdrawn.cancel();
        }
    }

    /// Whose key this is, if it is good.
    pub(super) fn holder(&self, key: &str) -> Option<Arc<Holder>> {
        let holders = self.holders.read().unwrap_or_else(PoisonError::into_inner);
        let holder = holders.get(&Digest::of(key))?;
        let expires_s = holder.terms().expires_s;
        expires_s
            .is_none_or(|expires_s| now_s() < expires_s)
            .then(|| Arc::clone(holder))
    }
}

fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn entry(name: &str, key: &str, rest: &str) -> String {
        format!(
            "[[key]]\nname = {name:?}\nsha256 = \"{}\"\n{rest}\n",
            Digest::of(key).to_hex()
        )
    }

    fn ring(text: &str) -> (Ring, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys.toml");
        fs::write(&path, text).expect("written");
        (Ring::open(&path).expect("opens"), folder)
    }

    fn change(ring: &Ring, text: &str) {
        ring.take(&file::read(text).expect("is right"), Instant::now());
    }

    #[test]
    fn only_keys_of_the_file_are_good() {
        let expired = entry("old", "ik-old", "expires = 2020-01-01");
        let valid = entry("new", "ik-new", "expires = 9999-01-01");
        let (ring, _folder) = ring(&(entry("a", "ik-a", "") + &expired + &valid));
        assert_eq!(ring.holder("ik-a").expect("good").name, "a");
        assert_eq!(ring.holder("ik-new").expect("good").name, "new");
        for bad in ["", "a", "ik-b", "ik-a ", "ik-old"] {
            assert!(ring.holder(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn who_stays_keeps_what_he_has_used_and_who_goes_is_sent_away() {
        let one = |rest: &str| entry("a", "ik-a", &format!("requests_per_minute = 1\n{rest}"));
        let (ring, _folder) = ring(&(one("") + &entry("b", "ik-b", "")));
        let (a, b) = (
            ring.holder("ik-a").expect("good"),
            ring.holder("ik-b").expect("good"),
        );
        let now = Instant::now();
        assert!(a.meter().enter(now).is_ok());
        assert_eq!(a.share().weight, 1);
        assert_ne!(a.share().tenant, b.share().tenant);
        change(&ring, &one("isolate = true\nweight = 7"));
        assert_eq!(a.share().weight, 7);
        assert!(a.meter().enter(now).is_err(), "it is the same meter");
        assert_ne!(a.salt(), 0);
        assert!(!a.withdrawn.is_cancelled() && b.withdrawn.is_cancelled());
        assert!(ring.holder("ik-b").is_none());
        // Given to another, it is another's.
        change(&ring, &entry("c", "ik-a", ""));
        assert!(a.withdrawn.is_cancelled());
        assert!(!ring.holder("ik-a").expect("good").withdrawn.is_cancelled());
    }

    #[test]
    fn a_file_that_is_not_right_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys.toml");
        let said = |path: &Path| format!("{:#}", Ring::open(path).err().expect("an error"));
        assert!(said(&path).contains("api.keys: cannot read"), "{}", said(&path));
        fs::write(&path, "[[key]]\nname = \"a\"\nsha256 = \"x\"").expect("written");
        assert!(said(&path).contains("64 hexadecimal digits"), "{}", said(&path));
    }

    /// Looks until it is so; whoever waits too long has failed.
    async fn comes(is_so: impl Fn() -> bool) {
        for _ in 0..3_000 {
            if is_so() {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("it did not come");
    }

    #[tokio::test]
    async fn the_file_is_followed_and_a_broken_one_changes_nothing() {
        let (ring, folder) = ring(&entry("a", "ik-a", ""));
        let (ring, path) = (Arc::new(ring), folder.path().join("keys.toml"));
        let stop = CancellationToken::new();
        let following = {
            let (ring, stop) = (Arc::clone(&ring), stop.clone());
            tokio::spawn(async move { ring.look_every(Duration::from_millis(1), stop).await })
        };
        // The first look is at what it was opened with.
        sleep(Duration::from_millis(50)).await;
        fs::write(&path, "not TOML").expect("written");
        sleep(Duration::from_millis(50)).await;
        assert!(ring.holder("ik-a").is_some());
        // As Kubernetes does it: another file comes in its place.
        let next = folder.path().join("next");
        fs::write(&next, entry("b", "ik-b", "")).expect("written");
        fs::rename(next, &path).expect("renamed");
        comes(|| ring.holder("ik-a").is_none() && ring.holder("ik-b").is_some()).await;
        stop.cancel();
        following.await.expect("ends");
    }
}
