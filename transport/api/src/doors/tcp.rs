//! HTTP/1.1 and HTTP/2 over TCP, with and without TLS.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use http::{Request, Version};
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::heard::Heard;
use super::occupancy::{Placed, Shared, Verdict};
use super::rest::discard;
use super::{DoorLimits, Hall, drain};

/// The pause after a failed accept: most often no file descriptor is left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What one HTTP/2 stream may hold of an answer its client is slow to take, in bytes.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// What a socket may hold of an answer and not have sent, in bytes. A system gives it megabytes where a client is near: whoever stops
/// reading would be noticed that much later.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 32 << 10;

/// Accepts until the doors close, then drains; returns the number of connections that had to be cut.
pub(super) async fn listen(listener: TcpListener, tls: Option<TlsAcceptor>, mut hall: Hall) -> usize {
    let mut connections = JoinSet::new();
    while let Some(accepted) = next(&listener, &mut hall, &mut connections).await {
        match accepted {
            Ok((stream, peer, permit)) => {
                connections.spawn(connection(stream, peer, tls.clone(), hall.clone(), permit));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    drain(connections, &hall.limits).await
}

type Accepted = std::io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)>;

/// The next connection and its place; `None` when the doors close.
async fn next(listener: &TcpListener, hall: &mut Hall, connections: &mut JoinSet<()>) -> Option<Accepted> {
    let places = Arc::clone(&hall.connections);
    let accept = async {
        let (stream, peer) = listener.accept().await?;
        // While this one waits for its place, the others wait in the backlog. One comes free: every connection ends by its limits.
        let permit = places.acquire_owned().await.map_err(std::io::Error::other)?;
        Ok((stream, peer, permit))
    };
    let mut accept = pin!(accept);
    loop {
        tokio::select! {
            biased;
            () = hall.closing() => return None,
            // Only to forget those that have ended.
            Some(_) = connections.join_next() => {}
            accepted = &mut accept => return Some(accepted),
        }
    }
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    hall: Hall,
    _permit: OwnedSemaphorePermit,
) {
    if let Err(error) = prepare(&stream, &hall.limits) {
        tracing::debug!(%peer, %error, "cannot set the options of a connection");
    }
    let Some(tls) = tls else {
        return http(stream, peer, hall).await;
    };
    match timeout(hall.limits.header_read, tls.accept(stream)).await {
        Ok(Ok(stream)) => http(stream, peer, hall).await,
        Ok(Err(error)) => tracing::debug!(%peer, %error, "the TLS handshake failed"),
        Err(_) => tracing::debug!(%peer, "the TLS handshake was not done in time"),
    }
}

/// First tokens must not wait for an acknowledgement; a client that has stopped reading must be noticed soon, and one that has vanished
/// at all.
fn prepare(stream: &TcpStream, limits: &DoorLimits) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    // The system counts in seconds.
    let probe = limits.probe_interval().max(Duration::from_secs(1));
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(probe).with_interval(probe))?;
    #[cfg(target_os = "linux")]
    {
        socket.set_tcp_user_timeout(Some(limits.stall))?;
        socket.set_tcp_notsent_lowat(UNSENT_BYTES)?;
    }
    Ok(())
}

/// Speaks HTTP on one connection until it ends, breaks a limit, or its client is sent elsewhere and it is done.
async fn http<I: AsyncRead + AsyncWrite + Unpin + Send + 'static>(io: I, peer: SocketAddr, mut hall: Hall) {
    let occupancy = Shared::new(Instant::now());
    let streams = Streams::default();
    let _owner = Owner(streams.clone());
    let service = {
        let (hall, occupancy, streams) = (hall.clone(), occupancy.clone(), streams.clone());
        service_fn(move |request: Request<Incoming>| {
            let (hall, occupancy, streams) = (hall.clone(), occupancy.clone(), streams.clone());
            async move {
                let place = occupancy.enter(CUT.try_with(Arc::clone).ok());
                let http2 = request.version() == Version::HTTP_2;
                let mut answered = hall.answer(request.map(Body::new), peer).await;
                if let Some(rest) = answered.rest.take_if(|_| http2) {
                    streams.spawn(discard(rest));
                }
                let response = answered.lingering();
                Ok::<_, Infallible>(response.map(|body| Placed::new(body, place)))
            }
        })
    };
    let builder = builder(&hall.limits, streams);
    let io = TokioIo::new(Heard::new(io, occupancy.clone()));
    let mut serving = pin!(builder.serve_connection(io, service));
    let mut check = interval(hall.limits.check_interval());
    let (begins, mut closing) = (hall.begins(), false);
    loop {
        tokio::select! {
            biased;
            ended = serving.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%peer, %error, "a connection broke");
                }
                return;
            }
            () = hall.beyond(begins), if !closing => {
                closing = true;
                serving.as_mut().graceful_shutdown();
            }
            now = check.tick() => match occupancy.lock().verdict(now, &hall.limits) {
                Verdict::Keep => {}
                Verdict::Late => {
                    tracing::debug!(%peer, "the headers of a request were not there in time");
                    return;
                }
                Verdict::Stalled => {
                    tracing::debug!(%peer, "a client takes nothing of its answer: cut off");
                    return;
                }
                // It was told to go and has not gone.
                Verdict::Idle if closing => return,
                Verdict::Idle => {
                    closing = true;
                    serving.as_mut().graceful_shutdown();
                }
            },
        }
    }
}

fn builder(limits: &DoorLimits, streams: Streams) -> auto::Builder<Streams> {
    let mut builder = auto::Builder::new(streams);
    let header_bytes = usize::try_from(limits.header_bytes)
        .unwrap_or(usize::MAX)
        .max(8192);
    builder
        .http1()
        .timer(TokioTimer::new())
        // Its clock would run between requests too, and close what may be idle for longer: `Heard` keeps the time.
        .header_read_timeout(None)
        .max_buf_size(header_bytes);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.probe_interval())
        .keep_alive_timeout(limits.stall)
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(limits.header_bytes)
        .max_send_buf_size(SEND_BUFFER_BYTES);
    builder
}

tokio::task_local! {
    /// Ends the HTTP/2 stream that is being served. HTTP/1.1 serves in the task of its connection, and has none.
    static CUT: Arc<Notify>;
}

/// Runs the HTTP/2 streams of one connection and what they leave behind.
#[derive(Clone, Default)]
struct Streams(Arc<Mutex<JoinSet<()>>>);

/// Ends the streams with their connection. They hold [`Streams`] themselves, so that its last clone is no sign of it.
struct Owner(Streams);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.lock().abort_all();
    }
}

impl Streams {
    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut streams = self.lock();
        while streams.try_join_next().is_some() {}
        streams.spawn(task);
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let cut = Arc::new(Notify::new());
        let serving = CUT.scope(Arc::clone(&cut), stream);
        self.spawn(async move {
            tokio::select! {
                biased;
                // Dropped before its end, it is reset; its neighbours go on.
                () = cut.notified() => tracing::debug!("a client takes nothing of an answer: cut off"),
                () = serving => {}
            }
        });
    }
}
