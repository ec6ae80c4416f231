//! The certificate, and what TCP and QUIC make of it. The provider is always `ring`, and always named.

use std::sync::Arc;

use http::HeaderValue;
use quinn::crypto::rustls::{NoInitialCipherSuite, QuicServerConfig};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::limits::DoorLimits;

/// How long a client may remember the HTTP/3 door.
const ALT_SVC_AGE_S: u32 = 86_400;

/// A server's certificate chain and its key.
#[derive(Debug)]
pub struct Tls {
    /// The server's certificate first.
    pub cert_chain: Vec<CertificateDer<'static>>,
    /// The private key of the first certificate.
    pub key: PrivateKeyDer<'static>,
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

impl Clone for Tls {
    fn clone(&self) -> Self {
        Self {
            cert_chain: self.cert_chain.clone(),
            key: self.key.clone_key(),
        }
    }
}

impl Tls {
    /// Reads a chain of certificates and a private key (PKCS#8, SEC1 or PKCS#1) from PEM.
    pub fn from_pem(cert_chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let cert_chain = CertificateDer::pem_slice_iter(cert_chain)
            .collect::<Result<Vec<_>, _>>()
            .and_then(|chain| {
                if chain.is_empty() {
                    Err(rustls_pki_types::pem::Error::NoItemsFound)
                } else {
                    Ok(chain)
                }
            })
            .map_err(|source| TlsError::Pem {
                what: "certificate",
                source,
            })?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|source| TlsError::Pem {
            what: "private key",
            source,
        })?;
        Ok(Self { cert_chain, key })
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
            .with_single_cert(self.cert_chain.clone(), self.key.clone_key())?;
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Ok(config)
    }
}

/// The value of `Alt-Svc` that names the HTTP/3 door.
pub(super) fn alt_svc(port: u16) -> HeaderValue {
    HeaderValue::try_from(format!("h3=\":{port}\"; ma={ALT_SVC_AGE_S}"))
        .unwrap_or_else(|_| HeaderValue::from_static("clear"))
}
