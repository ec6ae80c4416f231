//! The certificate, and what TCP and QUIC make of it. The provider is always `ring`, and always named.

use std::sync::{Arc, PoisonError, RwLock};

use http::HeaderValue;
use quinn::crypto::rustls::{NoInitialCipherSuite, QuicServerConfig};
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::limits::DoorLimits;

/// How long a client may remember the HTTP/3 door.
const ALT_SVC_AGE_S: u32 = 86_400;

/// A server's certificate chain and its key: may be renewed while doors show it. Cloning gives the same one.
#[derive(Clone, Debug)]
pub struct Tls(Arc<Shown>);

/// What the next handshake shows.
#[derive(Debug)]
struct Shown(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Not PEM, or without the section that is needed.
    #[error("cannot read the {what} as PEM: {source}")]
    Pem {
        /// `certificate` or `private key`.
        what: &'static str,
        /// What the parser said.
        source: rustls_pki_types::pem::Error,
    },
    /// Key and certificate do not fit, or are of a kind that is not supported.
    #[error("cannot use the certificate: {0}")]
    Config(#[from] rustls::Error),
    /// The provider lacks what QUIC starts with.
    #[error("cannot use the certificate for QUIC: {0}")]
    Quic(#[from] NoInitialCipherSuite),
}

impl Tls {
    /// Reads a chain of certificates, the server's own first, and its private key (PKCS#8, SEC1 or PKCS#1) from PEM.
    ///
    /// # Errors
    /// If they cannot be read, are of no kind that is supported, or do not belong together.
    pub fn from_pem(cert_chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let key = certified_key(cert_chain, key)?;
        Ok(Self(Arc::new(Shown(RwLock::new(Arc::new(key))))))
    }

    /// Every handshake from now on shows these. Connections that are open go on.
    ///
    /// # Errors
    /// As [`from_pem`](Self::from_pem); then the old ones stay.
    pub fn renew(&self, cert_chain: &[u8], key: &[u8]) -> Result<(), TlsError> {
        let key = certified_key(cert_chain, key)?;
        *self.0.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(key);
        Ok(())
    }

    pub(super) fn tcp_acceptor(&self) -> Result<TlsAcceptor, TlsError> {
        let config = self.server_config(&[b"h2", b"http/1.1"])?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    pub(super) fn quic_config(&self, limits: &DoorLimits) -> Result<quinn::ServerConfig, TlsError> {
        let crypto = QuicServerConfig::try_from(self.server_config(&[b"h3"])?)?;
        let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        config.transport_config(Arc::new(super::h3::transport(limits)));
        config.max_incoming(limits.connections);
        Ok(config)
    }

    fn server_config(&self, alpn: &[&[u8]]) -> Result<ServerConfig, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&self.0) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Ok(config)
    }
}

fn certified_key(cert_chain: &[u8], key: &[u8]) -> Result<CertifiedKey, TlsError> {
    let pem = |what| move |source| TlsError::Pem { what, source };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(cert_chain).collect();
    let chain = chain.map_err(pem("certificate"))?;
    if chain.is_empty() {
        return Err(pem("certificate")(rustls_pki_types::pem::Error::NoItemsFound));
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(pem("private key"))?;
    let provider = rustls::crypto::ring::default_provider();
    // Whether they belong together is looked at, too.
    Ok(CertifiedKey::from_der(chain, key, &provider)?)
}

/// The value of `Alt-Svc` that names the HTTP/3 door.
pub(super) fn alt_svc(port: u16) -> HeaderValue {
    HeaderValue::try_from(format!("h3=\":{port}\"; ma={ALT_SVC_AGE_S}"))
        .unwrap_or_else(|_| HeaderValue::from_static("clear"))
}
