//! One plain HTTP request to a node on this or another machine: what `rooms` and the ready line need.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// For the whole exchange.
const PATIENCE: Duration = Duration::from_secs(5);
/// Largest answer: ten thousand rooms fit many times over.
const ANSWER_BYTES: usize = 64 << 20;

/// `GET http://address/path`: status and body.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Result<(u16, Bytes)> {
    let exchange = async {
        let stream = TcpStream::connect(address).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Ends with the exchange: it is dropped when the answer is whole.
        let connection = async { connection.await.err() };
        let request = Request::get(path)
            .header("host", address.to_string())
            .body(Empty::<Bytes>::new())?;
        let answer = async {
            let response = sender.send_request(request).await?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), ANSWER_BYTES).collect().await;
            let body = body.map_err(|error| anyhow::anyhow!("{error}"))?.to_bytes();
            Ok((status, body))
        };
        tokio::pin!(connection, answer);
        tokio::select! {
            biased;
            answer = &mut answer => answer,
            error = &mut connection => match error {
                Some(error) => Err(error.into()),
                // The peer closed in order; the answer may still be whole.
                None => answer.await,
            }
        }
    };
    let answered = timeout(PATIENCE, exchange).await;
    answered.with_context(|| format!("http://{address} did not answer within {} s", PATIENCE.as_secs()))?
}
