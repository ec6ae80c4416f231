//! QUIC and TLS as the mesh uses them: TLS 1.3, both ends with a certificate, one stream, no datagrams, no 0-RTT and no resumption:
//! every link shows its certificates anew.

use std::net::SocketAddr;
use std::sync::Arc;

use quinn::crypto::rustls::{NoInitialCipherSuite, QuicClientConfig, QuicServerConfig};
use quinn::{AckFrequencyConfig, Endpoint, MtuDiscoveryConfig, TransportConfig, VarInt};
use rustls::RootCertStore;
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};

use crate::config::Config;
use crate::identity::Identity;

const ALPN: &[u8] = b"innkeeper";

/// Bytes that a peer may have on the way before they are read. A whole frame of the largest size fits.
const WINDOW_BYTES: u32 = 8 * 1024 * 1024;

/// Bytes that are kept until a peer has acknowledged them, beyond which writing waits.
const SEND_WINDOW_BYTES: u64 = 4 * 1024 * 1024;

/// Packets that a peer may have got without saying so: frames are small and many, and every acknowledgement is a packet of its own, to be
/// made, sent and taken in. It says so after its longest delay in any case; with less than half of the ten that a sender may have on the way
/// at first, no long frame waits for that.
const PACKETS_UNACKNOWLEDGED: u32 = 4;

/// Why there is no endpoint.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The address cannot be had.
    #[error("cannot bind {address}: {error}")]
    Address {
        /// The address asked for.
        address: SocketAddr,
        /// What the system says.
        error: std::io::Error,
    },
    /// The certificates or the key are of no use.
    #[error("certificates: {0}")]
    Tls(#[from] rustls::Error),
    /// The authorities' certificates are of no use.
    #[error("the authorities' certificates: {0}")]
    Roots(#[from] VerifierBuilderError),
    /// TLS lacks a cipher that QUIC needs.
    #[error("TLS: {0}")]
    Cipher(#[from] NoInitialCipherSuite),
}

/// An endpoint that takes connections, on `address`.
///
/// # Errors
/// If the address is taken or the identity is of no use.
pub fn listen_endpoint(
    address: SocketAddr,
    identity: &Identity,
    config: &Config,
) -> Result<Endpoint, BindError> {
    let server = server_config(identity, config)?;
    Endpoint::server(server, address).map_err(|error| BindError::Address { address, error })
}

/// An endpoint to dial from, on `address`; only gateways with an address of the same family can be dialled from it.
///
/// # Errors
/// If the address is taken.
pub fn dial_endpoint(address: SocketAddr) -> Result<Endpoint, BindError> {
    Endpoint::client(address).map_err(|error| BindError::Address { address, error })
}

/// What a gateway's endpoint needs, for endpoints that are made elsewhere (over a simulated network, say).
///
/// # Errors
/// If the identity is of no use.
pub fn server_config(identity: &Identity, config: &Config) -> Result<quinn::ServerConfig, BindError> {
    let provider = provider();
    let roots = Arc::new(roots(identity)?);
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider)).build()?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(identity.chain.clone(), identity.key.clone_key())?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.session_storage = Arc::new(NoServerSessionStorage {});
    tls.send_tls13_tickets = 0;
    let mut server = quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    server.transport_config(Arc::new(transport(config, 1)));
    Ok(server)
}

/// What a worker needs to dial.
///
/// # Errors
/// If the identity is of no use.
pub fn client_config(identity: &Identity, config: &Config) -> Result<quinn::ClientConfig, BindError> {
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots(identity)?)
        .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.resumption = Resumption::disabled();
    let mut client = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    client.transport_config(Arc::new(transport(config, 0)));
    Ok(client)
}

/// Named explicitly: with two providers in a binary rustls would not know which one to take.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn roots(identity: &Identity) -> Result<RootCertStore, rustls::Error> {
    let mut roots = RootCertStore::empty();
    for root in &identity.roots {
        roots.add(root.clone())?;
    }
    Ok(roots)
}

/// `streams`: how many the peer may open.
fn transport(config: &Config, streams: u8) -> TransportConfig {
    let mut acknowledgements = AckFrequencyConfig::default();
    acknowledgements.ack_eliciting_threshold(VarInt::from(PACKETS_UNACKNOWLEDGED));
    let mut transport = TransportConfig::default();
    transport
        // The hello's deadline ends a handshake, the lease ends a link. A third bound could only contradict them: the lease is the
        // gateway's, and a worker does not know it yet.
        .max_idle_timeout(None)
        .max_concurrent_bidi_streams(VarInt::from(streams))
        .max_concurrent_uni_streams(VarInt::from(0u8))
        .datagram_receive_buffer_size(None)
        .stream_receive_window(VarInt::from(WINDOW_BYTES))
        .receive_window(VarInt::from(WINDOW_BYTES))
        .send_window(SEND_WINDOW_BYTES)
        .ack_frequency_config(Some(acknowledgements));
    if !config.mtu_discovery {
        transport.mtu_discovery_config(None::<MtuDiscoveryConfig>);
    }
    transport
}
