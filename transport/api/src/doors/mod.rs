//! The listeners: HTTP/1.1 and HTTP/2 over TCP, with and without TLS, and HTTP/3 over QUIC, in front of one router.

mod h3;
mod h3_quic;
mod heard;
mod limits;
mod meter;
mod occupancy;
mod rest;
mod sliced;
mod tcp;
mod tls;

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, Request, Version, header};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tower::ServiceExt;

pub use limits::DoorLimits;
use rest::{Kept, Lingering, Rest};
use sliced::Sliced;
pub use tls::{Tls, TlsError};

/// How often a free port is looked for that TCP and UDP can share.
const PORT_TRIES: u32 = 16;

/// Which doors to open.
#[derive(Debug, Clone, Default)]
pub struct DoorsConfig {
    /// HTTP/1.1 and HTTP/2 (prior knowledge) without TLS.
    pub plain: Option<SocketAddr>,
    /// HTTP/1.1 and HTTP/2 over TLS, and HTTP/3 over QUIC on the UDP port of the same number. Needs `tls`.
    pub secure: Option<SocketAddr>,
    /// The certificate of the secure doors.
    pub tls: Option<Tls>,
    /// The port at which clients find the secure door, if another one than it is bound to: what answers over TCP say in `Alt-Svc`.
    pub public_port: Option<u16>,
    /// The limits on connections.
    pub limits: DoorLimits,
}

/// Open listeners; [`serve`] puts a router behind them.
pub struct Doors {
    plain: Option<(TcpListener, SocketAddr)>,
    secure: Option<Secure>,
    public_port: Option<u16>,
    limits: DoorLimits,
}

struct Secure {
    tcp: TcpListener,
    endpoint: quinn::Endpoint,
    acceptor: tokio_rustls::TlsAcceptor,
    addr: SocketAddr,
}

/// Why the doors could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The address is taken, not ours, or not allowed.
    #[error("cannot listen on {addr} ({protocol}): {source}")]
    Listen {
        /// The address asked for.
        addr: SocketAddr,
        /// `tcp` or `udp`.
        protocol: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// `secure` without `tls`.
    #[error("a secure address is configured but no certificate: give both or neither")]
    NoCertificate,
    /// No address at all.
    #[error("no address is configured: give a plain or a secure one")]
    NoAddress,
    /// The certificate or the key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A listener ended that must not.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Its task panicked.
    #[error("a listener failed: {0}")]
    Panicked(#[from] tokio::task::JoinError),
    /// It can take no more connections: its socket is gone.
    #[error("a listener ended unexpectedly: its socket can no longer be used")]
    Lost,
}

/// How a shutdown went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Connections that still had requests when [`DoorLimits::drain`] was over, and were cut.
    pub cut: usize,
}

/// The other end of a request's connection; in the extensions of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

impl Doors {
    /// Opens the listeners. Must be called inside a tokio runtime.
    pub async fn bind(config: DoorsConfig) -> Result<Self, BindError> {
        if config.plain.is_none() && config.secure.is_none() {
            return Err(BindError::NoAddress);
        }
        let plain = match config.plain {
            Some(addr) => Some(bind_tcp(addr).await?),
            None => None,
        };
        let secure = match (config.secure, &config.tls) {
            (Some(addr), Some(tls)) => Some(Secure::bind(addr, tls, &config.limits).await?),
            (Some(_), None) => return Err(BindError::NoCertificate),
            (None, _) => None,
        };
        Ok(Self {
            plain,
            secure,
            public_port: config.public_port,
            limits: config.limits,
        })
    }

    /// Where HTTP without TLS is served.
    #[must_use]
    pub fn plain_addr(&self) -> Option<SocketAddr> {
        self.plain.as_ref().map(|(_, addr)| *addr)
    }

    /// Where HTTPS and, over UDP, HTTP/3 are served.
    #[must_use]
    pub fn secure_addr(&self) -> Option<SocketAddr> {
        self.secure.as_ref().map(|secure| secure.addr)
    }
}

impl Secure {
    async fn bind(addr: SocketAddr, tls: &Tls, limits: &DoorLimits) -> Result<Self, BindError> {
        let acceptor = tls.tcp_acceptor()?;
        let mut tries = if addr.port() == 0 { PORT_TRIES } else { 1 };
        loop {
            let (tcp, addr) = bind_tcp(addr).await?;
            tries -= 1;
            match std::net::UdpSocket::bind(addr).and_then(|udp| h3::endpoint(udp, tls.quic_config(limits))) {
                Ok(endpoint) => {
                    return Ok(Self {
                        tcp,
                        endpoint,
                        acceptor,
                        addr,
                    });
                }
                // The number was free for TCP only: try another.
                Err(_) if tries > 0 => {}
                Err(source) => {
                    return Err(BindError::Listen {
                        addr,
                        protocol: "udp",
                        source,
                    });
                }
            }
        }
    }
}

async fn bind_tcp(addr: SocketAddr) -> Result<(TcpListener, SocketAddr), BindError> {
    let listen = async {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        Ok((listener, addr))
    };
    listen.await.map_err(|source| BindError::Listen {
        addr,
        protocol: "tcp",
        source,
    })
}

/// Serves until `shutdown` resolves; then takes nothing new, lets what is under way finish for
/// [`DoorLimits::drain`], and cuts the rest. Dropping the future cuts everything at once.
///
/// From `leaving` on, which may come before, clients are sent elsewhere while what is under way goes on: every connection that is open is
/// told to send nothing more (GOAWAY, or `Connection: close`), and whoever comes anew is answered by the router, on a connection for one
/// answer where the protocol has such, and no more told of the HTTP/3 door.
///
/// # Errors
/// If a listener ends by itself.
pub async fn serve(
    doors: Doors,
    router: Router,
    leaving: impl Future<Output = ()>,
    shutdown: impl Future<Output = ()>,
) -> Result<Drained, ServeError> {
    let (tell, stage) = watch::channel(Stage::Open);
    let alt_svc = doors
        .secure
        .as_ref()
        .map(|secure| tls::alt_svc(doors.public_port.unwrap_or(secure.addr.port())));
    let connections = Arc::new(Semaphore::new(doors.limits.connections));
    let hall = Hall {
        router,
        limits: doors.limits,
        connections,
        stage,
        alt_svc,
    };
    // Owns every listener, each of which owns its connections, which own their streams.
    let mut listeners = JoinSet::new();
    if let Some((tcp, _)) = doors.plain {
        listeners.spawn(tcp::listen(tcp, None, hall.clone()));
    }
    if let Some(secure) = doors.secure {
        listeners.spawn(tcp::listen(secure.tcp, Some(secure.acceptor), hall.clone()));
        listeners.spawn(h3::listen(secure.endpoint, hall.clone()));
    }
    let (mut leaving, mut shutdown) = (pin!(leaving), pin!(shutdown));
    loop {
        tokio::select! {
            biased;
            () = shutdown.as_mut() => break,
            () = leaving.as_mut(), if *tell.borrow() == Stage::Open => {
                tell.send_replace(Stage::Leaving);
            }
            // Listeners end only when told to.
            Some(ended) = listeners.join_next() => return Err(ended.map_or_else(ServeError::from, |_| ServeError::Lost)),
        }
    }
    tell.send_replace(Stage::Closing);
    let mut cut = 0;
    // Each ends soon after `limits.drain`: see `drain`.
    while let Some(ended) = listeners.join_next().await {
        cut += ended?;
    }
    Ok(Drained { cut })
}

/// How far the doors are on their way to their end.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Debug)]
enum Stage {
    Open,
    /// Open for what is under way; clients are sent elsewhere.
    Leaving,
    Closing,
}

/// What every listener and connection needs.
#[derive(Clone)]
struct Hall {
    router: Router,
    limits: DoorLimits,
    /// One permit a connection, over all listeners.
    connections: Arc<Semaphore>,
    stage: watch::Receiver<Stage>,
    /// Names the HTTP/3 door to those who came over TCP.
    alt_svc: Option<HeaderValue>,
}

impl Hall {
    /// Resolves when the doors are to close.
    async fn closing(&mut self) {
        self.beyond(Stage::Leaving).await;
    }

    /// Resolves when the doors are further than that.
    async fn beyond(&mut self, stage: Stage) {
        // An error means that whoever would say so is gone: close as well.
        let _ = self.stage.wait_for(|now| *now > stage).await;
    }

    /// What a connection that begins now is to wait for the end of: its client knows as much already.
    fn begins(&self) -> Stage {
        (*self.stage.borrow()).min(Stage::Leaving)
    }

    /// Answers one request.
    async fn answer(&self, mut request: Request<Body>, peer: SocketAddr) -> Answered {
        request.extensions_mut().insert(Peer(peer));
        let version = request.version();
        // Whoever asks first is told before it has sent anything: there will be no rest.
        let asks_first = request.headers().contains_key(header::EXPECT);
        let rest = Rest::default();
        let request = request.map(|body| Body::new(Kept::new(body, rest.clone())));
        let mut response = match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        if version < Version::HTTP_3 {
            self.direct(&mut response, version);
        }
        Answered {
            response: response.map(|body| Body::new(Sliced::new(body))),
            rest: rest.take().filter(|_| !asks_first),
        }
    }
}

impl Hall {
    /// Tells a client that came over TCP where to ask next.
    fn direct(&self, response: &mut Response, version: Version) {
        let leaving = *self.stage.borrow() > Stage::Open;
        let headers = response.headers_mut();
        match &self.alt_svc {
            // It may remember the door for a day.
            Some(_) if leaving => headers.insert(header::ALT_SVC, HeaderValue::from_static("clear")),
            Some(value) => headers.insert(header::ALT_SVC, value.clone()),
            None => None,
        };
        // HTTP/2 knows no such header.
        if leaving && version < Version::HTTP_2 {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

/// An answer, and what its client has still to send of the request: to be taken for a while, see [`rest`].
struct Answered {
    response: Response,
    rest: Option<Body>,
}

impl Answered {
    /// The answer ends after the rest.
    fn lingering(self) -> Response {
        let Self { mut response, rest } = self;
        let Some(rest) = rest else { return response };
        // HTTP/1.1 would end the answer where its length says.
        response.headers_mut().remove(header::CONTENT_LENGTH);
        response.map(|body| Body::new(Lingering::new(body, rest)))
    }
}

/// Waits for the connections of a listener; returns how many had to be cut.
async fn drain(mut connections: JoinSet<()>, limits: &DoorLimits) -> usize {
    let end = Instant::now() + limits.drain;
    while !connections.is_empty() {
        if timeout_at(end, connections.join_next()).await.is_err() {
            let cut = connections.len();
            connections.shutdown().await;
            return cut;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    /// A door that can take no more connections is an error, and no silence: `Alt-Svc` would go on naming it.
    #[tokio::test]
    async fn a_listener_that_is_lost_is_told() {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let tls = Tls::from_pem(
            made.cert.pem().as_bytes(),
            made.signing_key.serialize_pem().as_bytes(),
        );
        let config = DoorsConfig {
            secure: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            tls: Some(tls.unwrap()),
            ..DoorsConfig::default()
        };
        let doors = Doors::bind(config).await.unwrap();
        let endpoint = doors.secure.as_ref().unwrap().endpoint.clone();
        endpoint.close(0_u32.into(), b"");
        let served = serve(doors, Router::new(), pending(), pending()).await;
        assert!(matches!(served, Err(ServeError::Lost)), "{served:?}");
    }
}
