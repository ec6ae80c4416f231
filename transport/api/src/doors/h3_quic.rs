//! QUIC as h3 wants to see it, for a server: h3-quinn, but for the request streams, which are ours.
//!
//! Ours say when the peer has stopped a response (h3 has no way to ask while there is nothing to send), reset a
//! response that was not finished (quinn would end it as if it were complete), and may be stopped at any time (h3-quinn
//! panics while a read is pending). h3 is pre-0.1: all that depends on its traits is in this file.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use quinn::{ReadError, VarInt, WriteError};

type Accepted = Result<(quinn::SendStream, quinn::RecvStream), quinn::ConnectionError>;
type Accepting = Pin<Box<dyn Future<Output = Accepted> + Send + Sync>>;

/// Resolves when the peer has stopped the response, has received all of it, or is gone.
pub(super) type Left = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// For each open request stream, how to learn that its client has left.
#[derive(Clone, Default)]
pub(super) struct Watch(Arc<Mutex<BTreeMap<u64, Left>>>);

impl Watch {
    fn with<R>(&self, act: impl FnOnce(&mut BTreeMap<u64, Left>) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the watch over one stream.
    pub(super) fn take(&self, stream: StreamId) -> Option<Left> {
        self.with(|left| left.remove(&stream.into_inner()))
    }
}

/// A QUIC connection of a server.
pub(super) struct Connection {
    inner: h3_quinn::Connection,
    quic: quinn::Connection,
    accepting: Option<Accepting>,
    watch: Watch,
}

impl Connection {
    pub(super) fn new(quic: quinn::Connection) -> (Self, Watch) {
        let watch = Watch::default();
        let inner = h3_quinn::Connection::new(quic.clone());
        (
            Self {
                inner,
                quic,
                accepting: None,
                watch: watch.clone(),
            },
            watch,
        )
    }
}

impl quic::Connection<Bytes> for Connection {
    type RecvStream = h3_quinn::RecvStream;
    type OpenStreams = Opener;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::RecvStream, ConnectionErrorIncoming>> {
        quic::Connection::<Bytes>::poll_accept_recv(&mut self.inner, cx)
    }

    fn poll_accept_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bidi, ConnectionErrorIncoming>> {
        let accepting = self.accepting.get_or_insert_with(|| {
            let quic = self.quic.clone();
            Box::pin(async move { quic.accept_bi().await })
        });
        let accepted = ready!(accepting.as_mut().poll(cx));
        self.accepting = None;
        let (send, recv) = accepted.map_err(connection_error)?;
        let left = send.stopped();
        self.watch.with(|all| {
            all.insert(
                stream_number(send.id()),
                Box::pin(async move {
                    let _ = left.await;
                }),
            )
        });
        let send = SendHalf {
            stream: send,
            writing: None,
            ended: false,
            watch: self.watch.clone(),
        };
        Poll::Ready(Ok(Bidi {
            send,
            recv: RecvHalf(recv),
        }))
    }

    fn opener(&self) -> Opener {
        Opener(quic::Connection::<Bytes>::opener(&self.inner))
    }
}

impl quic::OpenStreams<Bytes> for Connection {
    type BidiStream = Bidi;
    type SendStream = h3_quinn::SendStream<Bytes>;

    fn poll_open_bidi(&mut self, _cx: &mut Context<'_>) -> Poll<Result<Bidi, StreamErrorIncoming>> {
        Poll::Ready(Err(no_server_requests()))
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        self.inner.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        quic::OpenStreams::<Bytes>::close(&mut self.inner, code, reason);
    }
}

/// Opens the server's own one-way streams.
pub(super) struct Opener(h3_quinn::OpenStreams);

impl quic::OpenStreams<Bytes> for Opener {
    type BidiStream = Bidi;
    type SendStream = h3_quinn::SendStream<Bytes>;

    fn poll_open_bidi(&mut self, _cx: &mut Context<'_>) -> Poll<Result<Bidi, StreamErrorIncoming>> {
        Poll::Ready(Err(no_server_requests()))
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        self.0.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        quic::OpenStreams::<Bytes>::close(&mut self.0, code, reason);
    }
}

fn no_server_requests() -> StreamErrorIncoming {
    StreamErrorIncoming::Unknown("a server opens no request".into())
}

/// A request stream.
pub(super) struct Bidi {
    send: SendHalf,
    recv: RecvHalf,
}

/// The response's half. Dropped before its end, it is reset.
pub(super) struct SendHalf {
    stream: quinn::SendStream,
    writing: Option<WriteBuf<Bytes>>,
    ended: bool,
    watch: Watch,
}

/// The request's half.
pub(super) struct RecvHalf(quinn::RecvStream);

impl Drop for SendHalf {
    fn drop(&mut self) {
        self.watch
            .with(|all| all.remove(&stream_number(self.stream.id())));
        if !self.ended {
            quic::SendStream::<Bytes>::reset(self, Code::H3_REQUEST_CANCELLED.value());
        }
    }
}

impl quic::SendStream<Bytes> for SendHalf {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        while let Some(data) = self.writing.as_mut().filter(|data| data.has_remaining()) {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, data.chunk()));
            data.advance(written.map_err(write_error)?);
        }
        self.writing = None;
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.writing.is_some() {
            return Err(StreamErrorIncoming::Unknown(
                "data was sent before the last was written".into(),
            ));
        }
        self.writing = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.ended = true;
        Poll::Ready(
            self.stream
                .finish()
                .map_err(|error| StreamErrorIncoming::Unknown(Box::new(error))),
        )
    }

    fn reset(&mut self, code: u64) {
        self.ended = true;
        // An error says that it has ended already.
        let _ = self.stream.reset(VarInt::from_u64(code).unwrap_or(VarInt::MAX));
    }

    fn send_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

impl quic::RecvStream for RecvHalf {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        // Safe to cancel: the state of a read is in the stream, not in the future.
        let read = ready!(pin!(self.0.read_chunk(usize::MAX, true)).poll(cx));
        Poll::Ready(
            read.map(|chunk| chunk.map(|chunk| chunk.bytes))
                .map_err(read_error),
        )
    }

    fn stop_sending(&mut self, code: u64) {
        // An error says that it has ended already.
        let _ = self.0.stop(VarInt::from_u64(code).unwrap_or(VarInt::MAX));
    }

    fn recv_id(&self) -> StreamId {
        stream_id(self.0.id())
    }
}

impl quic::SendStream<Bytes> for Bidi {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, code: u64) {
        self.send.reset(code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl quic::RecvStream for Bidi {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.recv.poll_data(cx)
    }

    fn stop_sending(&mut self, code: u64) {
        self.recv.stop_sending(code);
    }

    fn recv_id(&self) -> StreamId {
        self.recv.recv_id()
    }
}

impl quic::BidiStream<Bytes> for Bidi {
    type SendStream = SendHalf;
    type RecvStream = RecvHalf;

    fn split(self) -> (SendHalf, RecvHalf) {
        (self.send, self.recv)
    }
}

fn stream_number(id: quinn::StreamId) -> u64 {
    VarInt::from(id).into_inner()
}

fn stream_id(id: quinn::StreamId) -> StreamId {
    StreamId::try_from(stream_number(id)).expect("QUIC's ids have at most 62 bits, as h3's may have")
}

fn connection_error(error: quinn::ConnectionError) -> ConnectionErrorIncoming {
    match error {
        quinn::ConnectionError::ApplicationClosed(close) => ConnectionErrorIncoming::ApplicationClose {
            error_code: close.error_code.into_inner(),
        },
        quinn::ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        other => ConnectionErrorIncoming::Undefined(Arc::new(other)),
    }
}

fn stream_lost(error: quinn::ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming {
        connection_error: connection_error(error),
    }
}

fn read_error(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(code) => StreamErrorIncoming::StreamTerminated {
            error_code: code.into_inner(),
        },
        ReadError::ConnectionLost(error) => stream_lost(error),
        other => StreamErrorIncoming::Unknown(Box::new(other)),
    }
}

fn write_error(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(code) => StreamErrorIncoming::StreamTerminated {
            error_code: code.into_inner(),
        },
        WriteError::ConnectionLost(error) => stream_lost(error),
        other => StreamErrorIncoming::Unknown(Box::new(other)),
    }
}
