//! Who a node is, to the others: a certificate that names it and its roles, signed by an authority that all of them trust.

mod dev_ca;
mod files;
mod roles;

use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use wire::Role;

pub use dev_ca::DevCa;
pub use files::IdentityFiles;
pub(crate) use roles::{certified, node_name, server_name, shown};

/// A node's certificate and key, and the authorities it believes.
///
/// The certificate names each role of the node as `<role>.innkeeper` among its DNS names: a worker takes only a peer
/// with `gateway.innkeeper` for a gateway, and a gateway only one with the role that its hello claims. It names the node itself as
/// `<node>.node.innkeeper`, so that no node can come under another's name and take its place; `*.node.innkeeper` is for certificates
/// that many nodes share.
#[derive(Debug)]
pub struct Identity {
    /// The certificate, and any between it and the authority.
    pub chain: Vec<CertificateDer<'static>>,
    /// The certificate's key.
    pub key: PrivateKeyDer<'static>,
    /// The authorities' certificates.
    pub roots: Vec<CertificateDer<'static>>,
}

impl Identity {
    /// Whether its certificate is one for this node in this role, as its peers will look at it.
    #[must_use]
    pub fn is_for(&self, node: &str, role: Role) -> bool {
        let [leaf, ..] = &self.chain[..] else {
            return false;
        };
        certified(leaf, &server_name(role)) && certified(leaf, &node_name(node))
    }
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        Self {
            chain: self.chain.clone(),
            key: self.key.clone_key(),
            roots: self.roots.clone(),
        }
    }
}

/// Why there is no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: std::path::PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("{path}: {error}")]
    Pem {
        /// Which.
        path: std::path::PathBuf,
        /// What is wrong.
        error: rustls_pki_types::pem::Error,
    },
    /// A file holds no certificate.
    #[error("{path}: no certificate in it; it must hold one or more in PEM")]
    NoCertificate {
        /// Which.
        path: std::path::PathBuf,
    },
    /// A certificate cannot be made.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
}
