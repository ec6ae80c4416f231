//! HTTP/3 over QUIC.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::{Buf, Bytes};
use h3::error::{Code, StreamError};
use h3::server::{RequestResolver, RequestStream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use quinn::{Endpoint, TransportConfig, VarInt};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::h3_quic::{Attended, Connection, RecvHalf, SendHalf, Watch};
use super::meter::Meter;
use super::tls::TlsError;
use super::{DoorLimits, Hall, drain};

/// `H3_NO_ERROR`.
const NO_ERROR: VarInt = VarInt::from_u32(0x100);

/// What a client may have sent that was not read yet, in bytes: a stream, a connection.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 2 << 20;

/// What a connection may hold of answers its client has not acknowledged, in bytes.
const SEND_WINDOW_BYTES: u64 = 1 << 20;

/// How long the endpoint waits at the end for its last packets.
const FAREWELL: Duration = Duration::from_secs(1);

type Server = h3::server::Connection<Connection, Bytes>;

/// How QUIC connections of this door behave.
pub(super) fn transport(limits: &DoorLimits) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(limits.streams))
        // HTTP/3 needs three; a few more for extensions, which are ignored.
        .max_concurrent_uni_streams(VarInt::from_u32(8))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW_BYTES))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW_BYTES))
        .send_window(SEND_WINDOW_BYTES)
        // A client that waits long for its first token must not time out, one that has vanished must.
        .keep_alive_interval(Some(limits.probe_interval()))
        .max_idle_timeout(limits.stall.try_into().ok());
    transport
}

/// Puts an endpoint on a socket.
pub(super) fn endpoint(
    socket: std::net::UdpSocket,
    config: Result<quinn::ServerConfig, TlsError>,
) -> std::io::Result<Endpoint> {
    let config = config.map_err(std::io::Error::other)?;
    Endpoint::new(
        quinn::EndpointConfig::default(),
        Some(config),
        socket,
        Arc::new(quinn::TokioRuntime),
    )
}

/// Accepts until the doors close, then drains; returns the number of connections that had to be cut.
pub(super) async fn listen(endpoint: Endpoint, mut hall: Hall) -> usize {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = hall.closing() => break,
            // Only to forget those that have ended.
            Some(_) = connections.join_next() => {}
            incoming = endpoint.accept() => match incoming {
                Some(incoming) => admit(incoming, &hall, &mut connections),
                None => break,
            },
        }
    }
    endpoint.set_server_config(None);
    let cut = drain(connections, &hall.limits).await;
    endpoint.close(NO_ERROR, b"shutting down");
    let _ = timeout(FAREWELL, endpoint.wait_idle()).await;
    cut
}

fn admit(incoming: quinn::Incoming, hall: &Hall, connections: &mut JoinSet<()>) {
    // When places grow scarce, a client must first prove that it is where it says it is.
    let scarce = hall.connections.available_permits() < hall.limits.connections / 2;
    if scarce && !incoming.remote_address_validated() && incoming.may_retry() {
        let _ = incoming.retry();
        return;
    }
    match Arc::clone(&hall.connections).try_acquire_owned() {
        Ok(permit) => {
            connections.spawn(connection(incoming, hall.clone(), permit));
        }
        Err(_) => incoming.refuse(),
    }
}

async fn connection(incoming: quinn::Incoming, hall: Hall, _permit: OwnedSemaphorePermit) {
    let peer = incoming.remote_address();
    let limits = hall.limits.clone();
    let shaking = async {
        let quic = incoming.await.map_err(|error| error.to_string())?;
        let (connection, watch) = Connection::new(quic, most_bytes(&limits));
        let server = h3::server::builder()
            .max_field_section_size(u64::from(limits.header_bytes))
            .send_grease(false)
            .build(connection)
            .await
            .map_err(|error| error.to_string())?;
        Ok::<_, String>((server, watch))
    };
    match timeout(limits.header_read, shaking).await {
        Ok(Ok((server, watch))) => requests(server, &watch, peer, hall).await,
        Ok(Err(error)) => tracing::debug!(%peer, %error, "the QUIC handshake failed"),
        Err(_) => tracing::debug!(%peer, "the QUIC handshake was not done in time"),
    }
}

/// What may be read of a stream without anything coming of it: headers within their limit, and what may go before them.
fn most_bytes(limits: &DoorLimits) -> usize {
    usize::try_from(limits.header_bytes)
        .unwrap_or(usize::MAX)
        .saturating_mul(2)
}

/// Serves the requests of one connection until it ends, is idle for too long, or its client is sent elsewhere and it is done.
async fn requests(mut server: Server, watch: &Watch, peer: SocketAddr, mut hall: Hall) {
    // Owns the requests: when the connection ends, for whatever reason, they are dropped.
    let mut streams = JoinSet::new();
    let mut idle_since = Instant::now();
    let (begins, mut closing) = (hall.begins(), false);
    // h3 remembers each for as long as the connection lives.
    let mut headless = 0;
    let idle = hall.limits.idle;
    while !(closing && streams.is_empty()) {
        tokio::select! {
            biased;
            () = hall.beyond(begins), if !closing => {
                closing = true;
                // A peer that gives its control stream no room cannot be told, and is not waited for.
                if !matches!(timeout(FAREWELL, server.shutdown(0)).await, Ok(Ok(()))) {
                    return;
                }
            }
            Some(ended) = streams.join_next() => {
                idle_since = Instant::now();
                headless += u32::from(matches!(ended, Ok(Served::Headless)));
                if headless > hall.limits.streams {
                    return tracing::debug!(%peer, "too many streams of a client had no headers: cut off");
                }
            }
            accepted = fed(&watch.control, server.accept()) => match accepted {
                Some(Ok(Some(resolver))) => match watch.take() {
                    Some(attended) => {
                        streams.spawn(request(resolver, attended, peer, hall.clone()));
                    }
                    None => return tracing::error!(%peer, "a request came without its stream"),
                },
                // The client says goodbye: what is under way is finished.
                Some(Ok(None)) => closing = true,
                Some(Err(error)) => return tracing::debug!(%peer, %error, "a connection ended"),
                None => return tracing::debug!(%peer, "a client sends endless control frames: cut off"),
            },
            () = sleep_until(idle_since + idle), if streams.is_empty() => return,
        }
    }
}

/// What became of a request.
enum Served {
    /// It had no headers that could be read.
    Headless,
    Answered,
}

/// Serves one request; whatever it has begun is dropped as soon as the client has left.
async fn request(
    resolver: RequestResolver<Connection, Bytes>,
    Attended { mut left, meter }: Attended,
    peer: SocketAddr,
    hall: Hall,
) -> Served {
    let resolving = fed(&meter, resolver.resolve_request());
    let (head, stream) = match timeout(hall.limits.header_read, resolving).await {
        Ok(Some(Ok(resolved))) => resolved,
        refused => {
            let error = match refused {
                Ok(Some(Err(error))) => error.to_string(),
                Ok(_) => "they are too large".to_owned(),
                Err(_) => "they were not there in time".to_owned(),
            };
            tracing::debug!(%peer, error, "the headers of a request cannot be read");
            return Served::Headless;
        }
    };
    meter.refill();
    let (send, recv) = stream.split();
    let request = head.map(|()| Body::new(RequestBody::new(recv, meter)));
    tokio::select! {
        biased;
        () = &mut left => tracing::debug!(%peer, "the client left"),
        sent = answer(request, send, peer, &hall) => match sent {
            // Until all is acknowledged: a connection that closed now would take the end of the answer with it.
            Ok(mut send) => if timeout(hall.limits.stall, left).await.is_err() {
                send.stop_stream(Code::H3_REQUEST_CANCELLED);
            },
            Err(error) => tracing::debug!(%peer, error, "an answer broke off"),
        },
    }
    Served::Answered
}

/// Waits for h3, which may wait in vain for the rest of a frame that is too large: then `None`.
async fn fed<T>(meter: &Meter, waiting: impl Future<Output = T>) -> Option<T> {
    let mut waiting = pin!(waiting);
    poll_fn(|cx| match waiting.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if meter.withheld() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// Answers, as fast as the client takes it; gives the stream back when all has been written.
async fn answer(
    request: Request<Body>,
    mut send: RequestStream<SendHalf, Bytes>,
    peer: SocketAddr,
    hall: &Hall,
) -> Result<RequestStream<SendHalf, Bytes>, String> {
    let (parts, mut body) = hall.answer(request, peer).await.lingering().into_parts();
    within(hall, send.send_response(Response::from_parts(parts, ()))).await?;
    // The body bounds its own waits: a stream's next event comes by the request's deadline.
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| error.to_string())?;
        // A frame without data is legal, and some clients (h3's own among them) take it for the end.
        if let Ok(data) = frame.into_data()
            && !data.is_empty()
        {
            within(hall, send.send_data(data)).await?;
        }
    }
    within(hall, send.finish()).await?;
    Ok(send)
}

/// A client that takes nothing for too long has its answer cut off.
async fn within<E: std::fmt::Display>(
    hall: &Hall,
    sending: impl Future<Output = Result<(), E>>,
) -> Result<(), String> {
    match timeout(hall.limits.stall, sending).await {
        Ok(sent) => sent.map_err(|error| error.to_string()),
        Err(_) => Err("the client takes nothing of its answer".to_owned()),
    }
}

/// The body of a request, read as it is asked for.
struct RequestBody {
    stream: RequestStream<RecvHalf, Bytes>,
    meter: Meter,
    /// Data has come since the meter was last refilled.
    fruitful: bool,
}

/// Why a body broke off.
#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("a frame that holds no data is too large")]
    Fruitless,
}

impl RequestBody {
    fn new(stream: RequestStream<RecvHalf, Bytes>, meter: Meter) -> Self {
        Self {
            stream,
            meter,
            fruitful: false,
        }
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        loop {
            // Copied out, so that the stream is free again.
            let polled = self
                .stream
                .poll_recv_data(cx)
                .map_ok(|data| data.map(|mut data| data.copy_to_bytes(data.remaining())));
            match polled {
                Poll::Ready(Ok(Some(data))) => {
                    self.fruitful = true;
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                // A frame of no data ends a body for h3; here only the stream's end does.
                Poll::Ready(Ok(None)) if !self.meter.ended() => {}
                Poll::Ready(Ok(None)) => return Poll::Ready(None),
                Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                Poll::Pending if !self.meter.withheld() => return Poll::Pending,
                Poll::Pending if self.fruitful => {
                    self.fruitful = false;
                    self.meter.refill();
                }
                Poll::Pending => return Poll::Ready(Some(Err(BodyError::Fruitless))),
            }
        }
    }
}
