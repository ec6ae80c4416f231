//! A small HTTP/2 client without TLS: many streams on one connection, each read as slowly as a test likes.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Passing it means a wait without an end.
const PATIENCE: Duration = Duration::from_secs(120);

/// A connection; cut when dropped.
pub(crate) struct Http2 {
    sender: http2::SendRequest<BoxBody<Bytes, Infallible>>,
    host: String,
    /// Owns the task that drives the connection.
    _connection: JoinSet<()>,
}

impl Http2 {
    /// Connects. The server may be ahead of the reader of a stream by so many bytes.
    ///
    /// # Errors
    /// If there is no connection.
    pub(crate) async fn connect(to: SocketAddr, window: u32) -> Result<Self, String> {
        let stream = TcpStream::connect(to).await.map_err(|error| error.to_string())?;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(window)
            .initial_connection_window_size(1 << 24)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // What goes wrong is seen in the streams.
            let _ = connection.await;
        });
        Ok(Self {
            sender,
            host: to.to_string(),
            _connection: tasks,
        })
    }

    /// `POST` with a JSON body; the answer's head, and its body to be read.
    ///
    /// # Errors
    /// If there is no answer.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Response<Incoming>, String> {
        self.send(path, Full::new(Bytes::from(body.to_string())).boxed())
            .await
    }

    /// `POST` whose body never comes. Returns when the server answers or ends the stream.
    ///
    /// # Errors
    /// If the server ends it without an answer.
    pub(crate) async fn post_nothing(&self, path: &str) -> Result<Response<Incoming>, String> {
        self.send(path, BoxBody::new(Silent)).await
    }

    async fn send(&self, path: &str, body: BoxBody<Bytes, Infallible>) -> Result<Response<Incoming>, String> {
        let request = Request::post(format!("http://{}{path}", self.host))
            .header("content-type", "application/json")
            .body(body)
            .map_err(|error| error.to_string())?;
        let mut sender = self.sender.clone();
        let exchange = async {
            sender.ready().await?;
            sender.send_request(request).await
        };
        let answered = timeout(PATIENCE, exchange).await;
        let answered = answered.map_err(|_| format!("no answer for {} s", PATIENCE.as_secs()))?;
        answered.map_err(|error| error.to_string())
    }
}

/// A body that never comes.
struct Silent;

impl Body for Silent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        std::task::Poll::Pending
    }
}
