//! Identities in files.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::identity::{Identity, IdentityError};

/// Where an identity is kept, in PEM.
#[derive(Clone, Eq, PartialEq, Debug)]
pub struct IdentityFiles {
    /// The certificate, then any between it and the authority.
    pub cert: PathBuf,
    /// The key.
    pub key: PathBuf,
    /// The authorities' certificates.
    pub ca: PathBuf,
}

impl IdentityFiles {
    /// The usual names in a folder, which are also those of a Kubernetes TLS secret: `tls.crt`, `tls.key`, `ca.crt`.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            cert: folder.join("tls.crt"),
            key: folder.join("tls.key"),
            ca: folder.join("ca.crt"),
        }
    }

    /// Reads the identity.
    ///
    /// # Errors
    /// If a file cannot be read or does not hold what it should.
    pub fn load(&self) -> Result<Identity, IdentityError> {
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| IdentityError::Pem {
            path: self.key.clone(),
            error,
        })?;
        Ok(Identity {
            chain: certificates(&self.cert)?,
            key,
            roots: certificates(&self.ca)?,
        })
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let failed = |error| IdentityError::Pem {
        path: path.to_owned(),
        error,
    };
    let all: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(failed)?.collect();
    match all {
        Ok(found) if found.is_empty() => Err(IdentityError::NoCertificate {
            path: path.to_owned(),
        }),
        found => found.map_err(failed),
    }
}

/// Writes a file that others see whole or not at all. A `secret` one is its owner's alone.
pub(super) fn write_whole(path: &Path, text: &str, secret: bool) -> Result<(), IdentityError> {
    let failed = |error| IdentityError::File {
        path: path.to_owned(),
        error,
    };
    let part = write_part(path, text, secret).map_err(failed)?;
    std::fs::rename(part, path).map_err(failed)
}

/// As [`write_whole`], unless the file is there already: whoever is first wins, and the others see that file.
pub(super) fn write_first(path: &Path, text: &str) -> Result<(), IdentityError> {
    let failed = |error| IdentityError::File {
        path: path.to_owned(),
        error,
    };
    let part = write_part(path, text, true).map_err(failed)?;
    let linked = std::fs::hard_link(&part, path);
    std::fs::remove_file(part).map_err(failed)?;
    match linked {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(failed(error)),
        _ => Ok(()),
    }
}

/// With the process's number, names each unfinished file once.
static NEXT_PART: AtomicU64 = AtomicU64::new(0);

fn write_part(path: &Path, text: &str, secret: bool) -> std::io::Result<PathBuf> {
    let mut part = path.as_os_str().to_owned();
    let n = NEXT_PART.fetch_add(1, Ordering::Relaxed);
    part.push(format!(".{}.{n}.part", std::process::id()));
    let part = PathBuf::from(part);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if secret {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let mut file = options.open(&part)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        // Half a file is of no use, and the disk may be full.
        let _ = std::fs::remove_file(&part);
    }
    written.map(|()| part)
}
