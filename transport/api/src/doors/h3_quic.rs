//! QUIC as h3 wants to see it, for a server: h3-quinn, but for the request streams, which are ours.
//!
//! Ours say when the peer has stopped a response (h3 has no way to ask while there is nothing to send), reset a
//! response that was not finished (quinn would end it as if it were complete), may be stopped at any time (h3-quinn
//! panics while a read is pending), and bound what h3 reads without making anything of it (see [`Meter`]). h3 is pre-0.1: all that
//! depends on its traits is in this file.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use quinn::{ReadError, VarInt, WriteError};

use super::meter::Meter;

/// What comes of waiting for a stream. Ends with the connection, whose idle timeout ends it if nothing else does.
type Accepting<T> = Pin<Box<dyn Future<Output = Result<T, quinn::ConnectionError>> + Send + Sync>>;

/// Resolves when the peer has stopped the response, has received all of it, or is gone (at the latest by QUIC's idle timeout).
pub(super) type Left = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// What is to be known of a request's stream beside what h3 says of it.
pub(super) struct Attended {
    pub(super) left: Left,
    pub(super) meter: Meter,
}

/// A look behind h3's back.
#[derive(Clone)]
pub(super) struct Watch {
    latest: Arc<Mutex<Option<Attended>>>,
    /// Of the client's one-way streams, all together: what they say is of use where requests follow.
    pub(super) control: Meter,
}

impl Watch {
    fn latest(&self) -> MutexGuard<'_, Option<Attended>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What belongs to the stream that h3 has just accepted; to be taken before it accepts another.
    pub(super) fn take(&self) -> Option<Attended> {
        self.latest().take()
    }
}

/// A QUIC connection of a server.
pub(super) struct Connection {
    opener: Opener,
    quic: quinn::Connection,
    accepting: Option<Accepting<(quinn::SendStream, quinn::RecvStream)>>,
    accepting_recv: Option<Accepting<quinn::RecvStream>>,
    watch: Watch,
    most_bytes: usize,
}

impl Connection {
    /// At most `most_bytes` of each request, and of all one-way streams, are read without something coming of them.
    pub(super) fn new(quic: quinn::Connection, most_bytes: usize) -> (Self, Watch) {
        let watch = Watch {
            latest: Arc::default(),
            control: Meter::new(most_bytes),
        };
        let inner = h3_quinn::Connection::new(quic.clone());
        let connection = Self {
            opener: Opener(quic::Connection::<Bytes>::opener(&inner)),
            quic,
            accepting: None,
            accepting_recv: None,
            watch: watch.clone(),
            most_bytes,
        };
        (connection, watch)
    }
}

impl quic::Connection<Bytes> for Connection {
    type RecvStream = RecvHalf;
    type OpenStreams = Opener;

    fn poll_accept_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<RecvHalf, ConnectionErrorIncoming>> {
        let accepting = self.accepting_recv.get_or_insert_with(|| {
            let quic = self.quic.clone();
            Box::pin(async move { quic.accept_uni().await })
        });
        let accepted = ready!(accepting.as_mut().poll(cx));
        self.accepting_recv = None;
        let stream = accepted.map_err(connection_error)?;
        let meter = self.watch.control.clone();
        Poll::Ready(Ok(RecvHalf::new(stream, meter)))
    }

    fn poll_accept_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bidi, ConnectionErrorIncoming>> {
        let accepting = self.accepting.get_or_insert_with(|| {
            let quic = self.quic.clone();
            Box::pin(async move { quic.accept_bi().await })
        });
        let accepted = ready!(accepting.as_mut().poll(cx));
        self.accepting = None;
        let (send, recv) = accepted.map_err(connection_error)?;
        let stopped = send.stopped();
        let left: Left = Box::pin(async move {
            let _ = stopped.await;
        });
        let meter = Meter::new(self.most_bytes);
        let recv = RecvHalf::new(recv, meter.clone());
        *self.watch.latest() = Some(Attended { left, meter });
        self.watch.control.refill();
        let send = SendHalf {
            stream: send,
            writing: None,
            ended: false,
        };
        Poll::Ready(Ok(Bidi { send, recv }))
    }

    fn opener(&self) -> Opener {
        self.opener.clone()
    }
}

impl quic::OpenStreams<Bytes> for Connection {
    type BidiStream = Bidi;
    type SendStream = h3_quinn::SendStream<Bytes>;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bidi, StreamErrorIncoming>> {
        self.opener.poll_open_bidi(cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        self.opener.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.opener.close(code, reason);
    }
}

/// Opens the server's own one-way streams.
#[derive(Clone)]
pub(super) struct Opener(h3_quinn::OpenStreams);

impl quic::OpenStreams<Bytes> for Opener {
    type BidiStream = Bidi;
    type SendStream = h3_quinn::SendStream<Bytes>;

    fn poll_open_bidi(&mut self, _cx: &mut Context<'_>) -> Poll<Result<Bidi, StreamErrorIncoming>> {
        Poll::Ready(Err(StreamErrorIncoming::Unknown(
            "a server opens no request".into(),
        )))
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
}

/// The request's half, or a one-way stream of the client. Dropped before its end, its client is told that the rest is not needed.
pub(super) struct RecvHalf {
    stream: quinn::RecvStream,
    meter: Meter,
    ended: bool,
}

impl RecvHalf {
    fn new(stream: quinn::RecvStream, meter: Meter) -> Self {
        Self {
            stream,
            meter,
            ended: false,
        }
    }
}

impl Drop for RecvHalf {
    fn drop(&mut self) {
        if !self.ended {
            // Without a code of its own, quinn would send one that is no code of HTTP/3.
            quic::RecvStream::stop_sending(self, Code::H3_NO_ERROR.value());
        }
    }
}

impl Drop for SendHalf {
    fn drop(&mut self) {
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
        let most = self.meter.left_bytes();
        if most == 0 {
            // Nobody is woken: whoever waits looks at the meter.
            return Poll::Pending;
        }
        // Safe to cancel: the state of a read is in the stream, not in the future.
        let read = ready!(pin!(self.stream.read_chunk(most, true)).poll(cx)).map_err(read_error)?;
        match &read {
            Some(chunk) => self.meter.spend(chunk.bytes.len()),
            None => {
                self.ended = true;
                self.meter.end();
            }
        }
        Poll::Ready(Ok(read.map(|chunk| chunk.bytes)))
    }

    fn stop_sending(&mut self, code: u64) {
        // An error says that it has ended already.
        let _ = self.stream.stop(VarInt::from_u64(code).unwrap_or(VarInt::MAX));
    }

    fn recv_id(&self) -> StreamId {
        stream_id(self.stream.id())
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

fn stream_id(id: quinn::StreamId) -> StreamId {
    StreamId::try_from(VarInt::from(id).into_inner())
        .expect("QUIC's ids have at most 62 bits, as h3's may have")
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
