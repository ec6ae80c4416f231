//! Certificates that are replaced while the process runs: their files are looked at every few seconds, and whoever connects after a change is
//! shown the new ones. Files that are of no use change nothing, and are told of. Connections that are open go on with what they began with.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};
use x509_parser::parse_x509_certificate;

/// Between two looks. Kubernetes takes a minute or more to put a new Secret into a pod.
const LOOK: Duration = Duration::from_secs(5);

/// Until when the certificates are good that this process shows, in seconds since 1970, by what they are for. Cloning gives the same ones.
#[derive(Clone, Default)]
pub(crate) struct Expiries(Arc<Mutex<BTreeMap<&'static str, i64>>>);

impl Expiries {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that are kept in files.
    pub(crate) fn all(&self) -> Vec<(&'static str, i64)> {
        self.lock().iter().map(|(what, at)| (*what, *at)).collect()
    }
}

/// Files of a certificate as they were when they were last looked at. The first one has the certificate.
pub(crate) struct Files {
    paths: Vec<PathBuf>,
    seen: Option<u64>,
}

impl Files {
    /// To be looked at before they are read: what changes in between is then found by the next look.
    pub(crate) fn look(paths: Vec<PathBuf>) -> Self {
        let seen = digest(&paths).ok();
        Self { paths, seen }
    }

    /// Whether they have changed since they were looked at.
    fn changed(&mut self) -> Result<bool> {
        let found = digest(&self.paths);
        let now = found.as_ref().ok().copied();
        let changed = now != self.seen;
        self.seen = now;
        match found {
            Err(error) if changed => Err(error.into()),
            _ => Ok(changed),
        }
    }

    fn expires(&self) -> Result<i64> {
        let path = self.paths.first().context("no file")?;
        expires(path).with_context(|| path.display().to_string())
    }
}

fn digest(paths: &[PathBuf]) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    for path in paths {
        fs::read(path)?.hash(&mut hasher);
    }
    Ok(hasher.finish())
}

fn expires(path: &Path) -> Result<i64> {
    let leaf = CertificateDer::from_pem_file(path)?;
    let (_, certificate) = parse_x509_certificate(&leaf).map_err(|error| anyhow!("{error}"))?;
    Ok(certificate.validity().not_after.timestamp())
}

/// Takes what is in the files now, whole, or says why it cannot be used.
type Take = Box<dyn Fn() -> Result<()> + Send>;

/// The certificates of a process. Dropping it ends the looking.
pub(crate) struct Renewals {
    looking: JoinSet<()>,
    expiries: Expiries,
}

impl Renewals {
    /// None yet.
    pub(crate) fn new(expiries: Expiries) -> Self {
        Self {
            looking: JoinSet::new(),
            expiries,
        }
    }

    /// Looks at these files from now on. `what` they are for: `mesh` or `api`.
    pub(crate) fn watch(&mut self, what: &'static str, files: Files, take: Take) {
        note(what, &files, &self.expiries);
        let expiries = self.expiries.clone();
        // Ends with its owner.
        self.looking.spawn(async move {
            let mut ticks = interval(LOOK);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut watched = (files, take);
            loop {
                ticks.tick().await;
                let expiries = expiries.clone();
                // A disk may take its time.
                let looked = spawn_blocking(move || {
                    let (files, take) = &mut watched;
                    look(what, files, take, &expiries);
                    watched
                });
                match looked.await {
                    Ok(back) => watched = back,
                    Err(error) => return warn!(what, %error, "certificates are not looked at any more"),
                }
            }
        });
    }
}

fn look(what: &'static str, files: &mut Files, take: &Take, expiries: &Expiries) {
    let taken = match files.changed() {
        Ok(false) => return,
        Ok(true) => take(),
        Err(error) => Err(error),
    };
    match taken {
        Ok(()) => {
            info!(
                what,
                "a certificate is renewed: whoever connects from now on is shown the new one"
            );
            note(what, files, expiries);
        }
        Err(error) => warn!(
            what,
            error = format!("{error:#}"),
            "a new certificate cannot be used: the old one stays"
        ),
    }
}

fn note(what: &'static str, files: &Files, expiries: &Expiries) {
    match files.expires() {
        Ok(at) => {
            expiries.lock().insert(what, at);
        }
        Err(error) => warn!(
            what,
            error = format!("{error:#}"),
            "it is not known when a certificate expires"
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn certificate(names: &str) -> String {
        let made = rcgen::generate_simple_self_signed(vec![names.to_owned()]).expect("made");
        made.cert.pem()
    }

    /// How often it is taken over these contents, one after the other; none: the file is not there.
    fn check(contents: &[Option<&str>], taken: usize) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tls.crt");
        fs::write(&path, certificate("first")).expect("written");
        let mut files = Files::look(vec![path.clone()]);
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let take: Take = Box::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        let expiries = Expiries::default();
        for content in contents {
            match content {
                Some(content) => fs::write(&path, content).expect("written"),
                None => fs::remove_file(&path).expect("removed"),
            }
            look("mesh", &mut files, &take, &expiries);
            look("mesh", &mut files, &take, &expiries);
        }
        assert_eq!(count.load(Ordering::Relaxed), taken);
    }

    #[test]
    fn what_has_changed_is_taken_once() {
        let (one, other) = (certificate("one"), certificate("other"));
        check(&[], 0);
        check(&[Some(&one)], 1);
        check(&[Some(&one), Some(&one)], 1);
        check(&[Some(&one), Some(&other), Some(&one)], 3);
        // Away and back again, as a Secret that is exchanged may be.
        check(&[Some(&one), None, Some(&one)], 2);
    }

    #[test]
    fn what_cannot_be_taken_leaves_what_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tls.crt");
        fs::write(&path, certificate("first")).expect("written");
        let expiries = Expiries::default();
        let mut files = Files::look(vec![path.clone()]);
        note("api", &files, &expiries);
        let known = expiries.all();
        // rcgen's own end of time.
        assert_eq!(known, [("api", 67_090_118_400)]);
        fs::write(&path, "no certificate").expect("written");
        look(
            "api",
            &mut files,
            &(Box::new(|| Err(anyhow!("no"))) as Take),
            &expiries,
        );
        assert_eq!(expiries.all(), known);
    }
}
