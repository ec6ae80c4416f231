//! A small HTTP/1.1 client: one connection a request, and the answer as it comes. Dropping an answer cuts its connection.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Between two pieces of an answer. Passing it means a wait without an end.
const SILENCE: Duration = Duration::from_secs(240);

/// An answer whose head has come.
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// `Retry-After`, if given.
    pub retry_after: Option<String>,
    body: Incoming,
    /// Owns the task that drives the connection.
    _connection: JoinSet<()>,
}

impl Response {
    /// The next bytes; `None` at the end of the body. A broken connection is an error.
    pub async fn next(&mut self) -> Result<Option<Bytes>, String> {
        loop {
            let frame = timeout(SILENCE, self.body.frame()).await;
            match frame.map_err(|_| format!("nothing came for {} s", SILENCE.as_secs()))? {
                None => return Ok(None),
                Some(Err(error)) => return Err(error.to_string()),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// The whole body.
    pub async fn text(mut self) -> Result<String, String> {
        let mut all = Vec::new();
        while let Some(bytes) = self.next().await? {
            all.extend_from_slice(&bytes);
        }
        String::from_utf8(all).map_err(|error| error.to_string())
    }
}

/// `GET http://to/path`.
pub async fn get(to: SocketAddr, path: &str) -> Result<Response, String> {
    let request = Request::get(path).header("host", to.to_string());
    send(to, request.body(Full::default()).map_err(|e| e.to_string())?).await
}

/// `POST http://to/path` with a JSON body.
pub async fn post(to: SocketAddr, path: &str, body: &Value) -> Result<Response, String> {
    let request = Request::post(path)
        .header("host", to.to_string())
        .header("content-type", "application/json");
    let body = Full::new(Bytes::from(body.to_string()));
    send(to, request.body(body).map_err(|e| e.to_string())?).await
}

async fn send(to: SocketAddr, request: Request<Full<Bytes>>) -> Result<Response, String> {
    let exchange = async {
        let stream = TcpStream::connect(to).await.map_err(|e| e.to_string())?;
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|e| e.to_string())?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // What goes wrong is seen in the body.
            let _ = connection.await;
        });
        let response = sender.send_request(request).await.map_err(|e| e.to_string())?;
        let retry_after = response.headers().get("retry-after");
        Ok(Response {
            status: response.status().as_u16(),
            retry_after: retry_after
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned),
            body: response.into_body(),
            _connection: tasks,
        })
    };
    let answered = timeout(SILENCE, exchange).await;
    answered.map_err(|_| format!("no answer from {to} for {} s", SILENCE.as_secs()))?
}
