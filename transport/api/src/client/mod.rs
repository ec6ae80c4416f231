//! A small HTTP/3 client for this API: one connection, JSON out, JSON or server-sent events back.

mod reach;
mod reply;
mod sse;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h3::client::{RequestStream, SendRequest};
use h3::error::StreamError;
use http::{Method, Request, header};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Endpoint, TransportConfig, VarInt};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio::task::JoinSet;
use tokio::time::timeout;

pub use reply::Reply;

/// `H3_NO_ERROR`.
const NO_ERROR: VarInt = VarInt::from_u32(0x100);

/// How long closing waits for its last packets.
const FAREWELL: Duration = Duration::from_secs(1);

/// Whom to talk to, whom to trust, how long to wait.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// The server's UDP address.
    pub addr: SocketAddr,
    /// The name the server's certificate must carry.
    pub server_name: String,
    /// The certificates to trust, as PEM.
    pub roots_pem: Vec<u8>,
    /// For the handshake.
    pub connect_timeout: Duration,
    /// From a request to the head of its answer: includes queueing and the prompt.
    pub head_timeout: Duration,
    /// Between two pieces of an answer. A server sends a comment every few seconds, and ends an answer by its deadline: how long
    /// it may go on altogether, the request's `timeout` says.
    pub silence_timeout: Duration,
}

impl ClientConfig {
    /// A configuration with ten seconds to connect, ten minutes for the head of an answer and one minute of silence.
    #[must_use]
    pub fn new(addr: SocketAddr, server_name: impl Into<String>, roots_pem: Vec<u8>) -> Self {
        Self {
            addr,
            server_name: server_name.into(),
            roots_pem,
            connect_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(600),
            silence_timeout: Duration::from_secs(60),
        }
    }
}

/// Why a request got no answer, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The certificates to trust cannot be used.
    #[error("cannot use the certificates to trust: {0}")]
    Roots(String),
    /// No UDP socket.
    #[error("cannot open a UDP socket: {0}")]
    Socket(#[from] std::io::Error),
    /// Nobody listens there.
    #[error("nobody listens on {addr} (udp): {source}")]
    Refused {
        /// The server's address.
        addr: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The server's certificate is not one that the trusted ones vouch for, or is not for this name.
    #[error("the certificate of {addr} is not trusted: {message}")]
    Untrusted {
        /// The server's address.
        addr: SocketAddr,
        /// What is wrong with it.
        message: String,
    },
    /// The handshake failed.
    #[error("cannot connect to {addr}: {message}")]
    Connect {
        /// The server's address.
        addr: SocketAddr,
        /// What QUIC or HTTP/3 said.
        message: String,
    },
    /// Nothing came in time.
    #[error("{what} did not come within {} s", after.as_secs_f64())]
    Timeout {
        /// What was awaited.
        what: &'static str,
        /// For how long.
        after: Duration,
    },
    /// The path or the body cannot be sent.
    #[error("cannot build the request: {0}")]
    Request(#[from] http::Error),
    /// The stream or the connection broke.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The answer is not what was expected.
    #[error("the answer is malformed: {0}")]
    Malformed(String),
}

/// A connection to one server. Dropping it ends its requests.
pub struct Client {
    config: ClientConfig,
    send: SendRequest<h3_quinn::OpenStreams, Bytes>,
    quic: quinn::Connection,
    endpoint: Endpoint,
    /// Owns the task that reads the control streams.
    _driver: JoinSet<()>,
}

impl Client {
    /// Connects.
    pub async fn connect(config: ClientConfig) -> Result<Self, ClientError> {
        let local: SocketAddr = match config.addr {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let mut endpoint = Endpoint::client(local)?;
        endpoint.set_default_client_config(quic_config(&config)?);
        let failed = |message: &dyn ToString| ClientError::Connect {
            addr: config.addr,
            message: message.to_string(),
        };
        let connecting = async {
            let connecting = endpoint
                .connect(config.addr, &config.server_name)
                .map_err(|error| failed(&error))?;
            let quic = connecting
                .await
                .map_err(|error| untrusted(config.addr, &error).unwrap_or_else(|| failed(&error)))?;
            let (driver, send) = h3::client::new(h3_quinn::Connection::new(quic.clone()))
                .await
                .map_err(|error| failed(&error))?;
            Ok((quic, driver, send))
        };
        let connecting = async {
            tokio::select! {
                biased;
                connected = connecting => connected,
                source = reach::refused(local, config.addr) => Err(ClientError::Refused { addr: config.addr, source }),
            }
        };
        let (quic, mut driver, send) = within("the handshake", config.connect_timeout, connecting).await?;
        let mut drivers = JoinSet::new();
        // Ends with the connection, which ends by its idle timeout at the latest.
        drivers.spawn(async move {
            let ended = driver.wait_idle().await;
            tracing::debug!(error = %ended, "the connection to the server ended");
        });
        Ok(Self {
            config,
            send,
            quic,
            endpoint,
            _driver: drivers,
        })
    }

    /// Asks for a path; waits for the head of the answer.
    pub async fn get(&self, path: &str) -> Result<Reply, ClientError> {
        self.request(Method::GET, path, Bytes::new(), &[]).await
    }

    /// Sends JSON to a path; waits for the head of the answer. Dropping the future, or the reply, resets the stream:
    /// the server stops its work.
    pub async fn post_json(
        &self,
        path: &str,
        json: impl Into<Bytes>,
        headers: &[(&str, &str)],
    ) -> Result<Reply, ClientError> {
        self.request(Method::POST, path, json.into(), headers).await
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        headers: &[(&str, &str)],
    ) -> Result<Reply, ClientError> {
        let uri = format!(
            "https://{}:{}{path}",
            self.config.server_name,
            self.config.addr.port()
        );
        let mut request = Request::builder().method(method).uri(uri);
        if !body.is_empty() {
            request = request
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::CONTENT_LENGTH, body.len());
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(())?;
        // Cheap: all clones share the connection.
        let mut send = self.send.clone();
        let asking = async {
            let mut stream = send.send_request(request).await.map_err(broken)?;
            let sent = send_body(&mut stream, body).await;
            // A server that refuses a body stops reading it, and has answered.
            let head = match stream.recv_response().await {
                Ok(head) => head,
                Err(error) => return Err(broken(sent.err().unwrap_or(error))),
            };
            Ok(Reply::new(head, stream, self.config.silence_timeout))
        };
        within("the head of the answer", self.config.head_timeout, asking).await
    }

    /// Closes the connection and waits briefly for the server to hear of it.
    pub async fn close(self) {
        self.quic.close(NO_ERROR, b"done");
        let _ = timeout(FAREWELL, self.endpoint.wait_idle()).await;
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.quic.close(NO_ERROR, b"done");
    }
}

async fn send_body(
    stream: &mut RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>,
    body: Bytes,
) -> Result<(), StreamError> {
    if !body.is_empty() {
        stream.send_data(body).await?;
    }
    stream.finish().await
}

fn quic_config(config: &ClientConfig) -> Result<quinn::ClientConfig, ClientError> {
    let unusable = |error: &dyn ToString| ClientError::Roots(error.to_string());
    let mut roots = rustls::RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(&config.roots_pem) {
        let root = root.map_err(|error| unusable(&error))?;
        roots.add(root).map_err(|error| unusable(&error))?;
    }
    if roots.is_empty() {
        return Err(ClientError::Roots("the PEM holds no certificate".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut crypto = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    crypto.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = QuicClientConfig::try_from(crypto).map_err(|error| unusable(&error))?;
    let mut quic = quinn::ClientConfig::new(Arc::new(crypto));
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(config.silence_timeout.try_into().ok())
        .keep_alive_interval(Some(config.silence_timeout / 4));
    quic.transport_config(Arc::new(transport));
    Ok(quic)
}

/// The error for a server whose certificate this end refused.
fn untrusted(addr: SocketAddr, error: &quinn::ConnectionError) -> Option<ClientError> {
    // RFC 8446, 6.2: from `bad_certificate` to `certificate_unknown`, `unknown_ca`, and `decrypt_error` for a signature that is
    // another's.
    const OF_CERTIFICATES: [u8; 7] = [42, 43, 44, 45, 46, 48, 51];
    let quinn::ConnectionError::TransportError(error) = error else {
        return None;
    };
    OF_CERTIFICATES
        .into_iter()
        .any(|alert| error.code == quinn::TransportErrorCode::crypto(alert))
        .then(|| ClientError::Untrusted {
            addr,
            message: error.reason.clone(),
        })
}

// By value because `map_err` hands it over so.
#[allow(clippy::needless_pass_by_value)]
fn broken(error: StreamError) -> ClientError {
    ClientError::Broken(error.to_string())
}

/// Nothing from the server is awaited without an end.
async fn within<T>(
    what: &'static str,
    after: Duration,
    waiting: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    timeout(after, waiting)
        .await
        .unwrap_or(Err(ClientError::Timeout { what, after }))
}
