//! A served router on loopback, and clients for every protocol it speaks.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;

use api::client::{Client, ClientConfig, Reply};
use api::{DoorLimits, Doors, DoorsConfig, Drained, Limits, Tls, router, serve};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle};

use crate::mock::MockSubmit;

pub struct Server {
    pub mock: Arc<MockSubmit>,
    pub plain: SocketAddr,
    pub secure: SocketAddr,
    pub cert_pem: String,
    leave: Option<oneshot::Sender<()>>,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<Drained>,
}

impl Server {
    pub async fn start(mock: Arc<MockSubmit>) -> Self {
        Self::with(mock, Limits::default(), DoorLimits::default()).await
    }

    /// With other limits on requests.
    pub async fn limited(mock: Arc<MockSubmit>, limits: Limits) -> Self {
        Self::with(mock, limits, DoorLimits::default()).await
    }

    /// With other limits on connections.
    pub async fn behind(mock: Arc<MockSubmit>, doors: DoorLimits) -> Self {
        Self::with(mock, Limits::default(), doors).await
    }

    pub async fn with(mock: Arc<MockSubmit>, limits: Limits, doors: DoorLimits) -> Self {
        let router = router(mock.clone(), limits);
        Self::of(mock, router, doors).await
    }

    /// With a router of the test's own.
    pub async fn of(mock: Arc<MockSubmit>, router: axum::Router, doors: DoorLimits) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let cert_pem = made.cert.pem();
        let tls = Tls::from_pem(cert_pem.as_bytes(), made.signing_key.serialize_pem().as_bytes()).unwrap();
        Self::open(mock, router, doors, (tls, cert_pem)).await
    }

    /// With a certificate of the test's own.
    pub async fn showing(mock: Arc<MockSubmit>, tls: Tls, cert_pem: String) -> Self {
        let router = router(mock.clone(), Limits::default());
        Self::open(mock, router, DoorLimits::default(), (tls, cert_pem)).await
    }

    async fn open(
        mock: Arc<MockSubmit>,
        router: axum::Router,
        doors: DoorLimits,
        (tls, cert_pem): (Tls, String),
    ) -> Self {
        let loopback = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let config = DoorsConfig {
            plain: loopback,
            secure: loopback,
            tls: Some(tls),
            public_port: None,
            limits: doors,
        };
        let doors = Doors::bind(config).await.unwrap();
        let (plain, secure) = (doors.plain_addr().unwrap(), doors.secure_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let (leave, leaving) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            let leaving = async {
                // Of a test that does not ask for it, never.
                match leaving.await {
                    Ok(()) => {}
                    Err(_) => pending().await,
                }
            };
            serve(doors, router, leaving, stopped).await.unwrap()
        });
        Self {
            mock,
            plain,
            secure,
            cert_pem,
            leave: Some(leave),
            stop: Some(stop),
            serving,
        }
    }

    pub async fn connect(&self, protocol: Protocol) -> Conn {
        match protocol {
            Protocol::Http1 => Conn::one(TcpStream::connect(self.plain).await.unwrap()).await,
            Protocol::Http2 => Conn::two(TcpStream::connect(self.plain).await.unwrap()).await,
            Protocol::Http1Tls => Conn::one(self.tls(b"http/1.1").await).await,
            Protocol::Http2Tls => Conn::two(self.tls(b"h2").await).await,
            Protocol::Http3 => {
                let config = ClientConfig::new(self.secure, "localhost", self.cert_pem.clone().into());
                Conn::Three(Client::connect(config).await.unwrap())
            }
        }
    }

    async fn tls(&self, alpn: &[u8]) -> tokio_rustls::client::TlsStream<TcpStream> {
        let stream = TcpStream::connect(self.secure).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        tokio_rustls::TlsConnector::from(Arc::new(self.trusting(alpn)))
            .connect(name, stream)
            .await
            .unwrap()
    }

    /// A connection that speaks no HTTP/3 of its own accord; the endpoint is to be kept with it.
    pub async fn quic(&self) -> (quinn::Endpoint, quinn::Connection) {
        let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(self.trusting(b"h3")).unwrap();
        let mut endpoint = quinn::Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(crypto)));
        let connection = endpoint.connect(self.secure, "localhost").unwrap().await.unwrap();
        (endpoint, connection)
    }

    fn trusting(&self, alpn: &[u8]) -> rustls::ClientConfig {
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.cert_pem.as_bytes()).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![alpn.to_vec()];
        config
    }

    /// One request on a connection of its own.
    pub async fn call(&self, protocol: Protocol, method: Method, path: &str, body: &Value) -> Answer {
        let mut conn = self.connect(protocol).await;
        let mut answer = conn.call(method, path, body).await.unwrap();
        answer._conn = Some(conn);
        answer
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call(Protocol::Http1, Method::POST, path, body).await
    }

    /// Begins the shutdown.
    /// Sends clients elsewhere.
    pub fn leave(&mut self) {
        self.leave.take().unwrap().send(()).unwrap();
    }

    pub fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits for its end.
    pub async fn stopped(mut self) -> Drained {
        self.stop();
        self.serving.await.unwrap()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Http1Tls,
    Http2,
    Http2Tls,
    Http3,
}

pub const PROTOCOLS: [Protocol; 5] = [
    Protocol::Http1,
    Protocol::Http1Tls,
    Protocol::Http2,
    Protocol::Http2Tls,
    Protocol::Http3,
];

/// Ends a client's connection when dropped.
pub struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub enum Conn {
    One(http1::SendRequest<Full<Bytes>>, #[allow(dead_code)] Driver),
    Two(http2::SendRequest<Full<Bytes>>, #[allow(dead_code)] Driver),
    Three(Client),
}

impl Conn {
    async fn one<I: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static>(io: I) -> Self {
        let (send, connection) = http1::handshake(TokioIo::new(io)).await.unwrap();
        Self::One(send, Driver(tokio::spawn(connection).abort_handle()))
    }

    async fn two<I: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static>(io: I) -> Self {
        let (send, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(io))
            .await
            .unwrap();
        Self::Two(send, Driver(tokio::spawn(connection).abort_handle()))
    }

    pub async fn call(&mut self, method: Method, path: &str, body: &Value) -> Result<Answer, String> {
        self.call_with(method, path, body, &[]).await
    }

    pub async fn call_with(
        &mut self,
        method: Method,
        path: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> Result<Answer, String> {
        let body = if body.is_null() {
            Bytes::new()
        } else {
            Bytes::from(body.to_string())
        };
        let uri = match self {
            Self::One(..) => path.to_owned(),
            Self::Two(..) | Self::Three(_) => format!("http://localhost{path}"),
        };
        let mut request = Request::builder().method(method.clone()).uri(uri);
        if let Self::One(..) = self {
            request = request.header(header::HOST, "localhost");
        }
        request = request.header(header::CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.clone())).unwrap();
        let answer = match self {
            Self::One(send, _) => send.send_request(request).await,
            Self::Two(send, _) => send.send_request(request).await,
            Self::Three(client) => {
                let reply = match method {
                    Method::GET => client.get(path).await,
                    _ => client.post_json(path, body, headers).await,
                };
                let reply = reply.map_err(|error| error.to_string())?;
                let (status, headers) = (reply.status, reply.headers.clone());
                return Ok(Answer {
                    status,
                    headers,
                    body: Body::Three(Box::new(reply)),
                    _conn: None,
                });
            }
        };
        let (parts, body) = answer.map_err(|error| error.to_string())?.into_parts();
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body: Body::Tcp(body),
            _conn: None,
        })
    }
}

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Body,
    /// Where the answer alone keeps its connection.
    _conn: Option<Conn>,
}

enum Body {
    Tcp(Incoming),
    Three(Box<Reply>),
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The next bytes; `None` at the end, an error if it broke off.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, String> {
        match &mut self.body {
            Body::Tcp(body) => match body.frame().await {
                Some(frame) => Ok(Some(
                    frame
                        .map_err(|error| error.to_string())?
                        .into_data()
                        .unwrap_or_default(),
                )),
                None => Ok(None),
            },
            Body::Three(reply) => reply.chunk().await.map_err(|error| error.to_string()),
        }
    }

    /// Reads until the text contains `wanted`.
    pub async fn read_until(&mut self, wanted: &str) -> String {
        let mut all = String::new();
        while !all.contains(wanted) {
            let chunk = self.chunk().await.unwrap().expect("the answer ended too early");
            all.push_str(std::str::from_utf8(&chunk).unwrap());
        }
        all
    }

    pub async fn text(mut self) -> String {
        let mut all = Vec::new();
        while let Some(chunk) = self.chunk().await.unwrap() {
            all.extend_from_slice(&chunk);
        }
        String::from_utf8(all).unwrap()
    }

    pub async fn json(self) -> Value {
        serde_json::from_str(&self.text().await).unwrap()
    }

    /// The data of all events.
    pub async fn events(self) -> Vec<String> {
        let text = self.text().await;
        assert!(
            text.is_empty() || text.ends_with("\n\n"),
            "the last event is cut: {text:?}"
        );
        text.split("\n\n")
            .filter(|event| !event.is_empty() && !event.starts_with(':'))
            .map(|event| event.strip_prefix("data: ").expect("not an event").to_owned())
            .collect()
    }
}
