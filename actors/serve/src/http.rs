//! One plain HTTP request to a node on this or another machine: what `rooms` and the ready line need.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::admin;
use crate::config::Config;

/// For the whole exchange.
const PATIENCE: Duration = Duration::from_secs(5);
/// Largest answer: ten thousand rooms fit many times over.
const ANSWER_BYTES: usize = 64 << 20;

/// `GET http://address/path`: status and body.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Result<(u16, Bytes)> {
    exchange(address, (Method::GET, path), None).await
}

async fn exchange(
    address: SocketAddr,
    (method, path): (Method, &str),
    token: Option<&str>,
) -> Result<(u16, Bytes)> {
    let exchange = async {
        let stream = TcpStream::connect(address).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Ends with the exchange: it is dropped when the answer is whole.
        let connection = async { connection.await.err() };
        let request = Request::builder().method(method).uri(path);
        let mut request = request.header("host", address.to_string());
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Empty::<Bytes>::new())?;
        let answer = async {
            let response = sender.send_request(request).await?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), ANSWER_BYTES).collect().await;
            let body = body.map_err(|error| anyhow!("{error}"))?.to_bytes();
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

/// A part of a path, whatever is in it.
pub(crate) fn escaped(part: &str) -> String {
    let mut text = String::new();
    for byte in part.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                text.push(char::from(byte));
            }
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}

/// A gateway's admin listener, and the token that opens it, if it needs one.
#[derive(Clone, Debug)]
pub(crate) struct Admin {
    address: SocketAddr,
    token: Option<String>,
}

impl Admin {
    /// As configured.
    ///
    /// # Errors
    /// If the token cannot be read.
    pub(crate) fn of(config: &Config) -> Result<Self> {
        Ok(Self {
            address: config.admin.listen,
            token: admin::token(config)?,
        })
    }

    /// `GET`: status and body.
    pub(crate) async fn get(&self, path: &str) -> Result<(u16, Bytes)> {
        exchange(self.address, (Method::GET, path), self.token.as_deref()).await
    }

    /// `POST` without a body: what is said to a 202. What it says otherwise is the error.
    ///
    /// # Errors
    /// If nothing answers there, or not with 202.
    pub(crate) async fn told(&self, path: &str) -> Result<String> {
        let answer = exchange(self.address, (Method::POST, path), self.token.as_deref()).await;
        let (status, body) = self.answered(answer)?;
        let said = String::from_utf8_lossy(&body).trim().to_owned();
        match status {
            202 => Ok(said),
            409 | 501 | 503 | 504 if !said.is_empty() => bail!(said),
            _ => Err(self.refused(path, status, &body)),
        }
    }

    fn answered(&self, answer: Result<(u16, Bytes)>) -> Result<(u16, Bytes)> {
        answer.with_context(|| {
            format!("no gateway's admin listener answers on {self}: give its address with --admin")
        })
    }

    /// `GET`: the body of a 200. What it says otherwise is the error.
    ///
    /// # Errors
    /// If nothing answers there, or not with 200.
    pub(crate) async fn asked(&self, path: &str) -> Result<Bytes> {
        let (status, body) = self.answered(self.get(path).await)?;
        match status {
            200 => Ok(body),
            _ => Err(self.refused(path, status, &body)),
        }
    }

    /// What a status that was not hoped for means.
    fn refused(&self, path: &str, status: u16, body: &Bytes) -> anyhow::Error {
        match (status, &self.token) {
            (401, None) => anyhow!(
                "the admin listener of {self} asks for a token: give its file with --set admin.token=FILE"
            ),
            (401, Some(_)) => anyhow!("the admin listener of {self} has another token than admin.token"),
            // In its own words.
            (400 | 404, _) if !body.is_empty() && body.len() < 4_096 && !body.starts_with(b"<") => {
                anyhow!("{}", String::from_utf8_lossy(body).trim())
            }
            _ => anyhow!("http://{self}{path} answered {status}: is that a gateway's admin listener?"),
        }
    }
}

impl fmt::Display for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn a_request_id_can_be_a_part_of_a_path() {
        assert_eq!(escaped("req_1-a.b~c"), "req_1-a.b~c");
        assert_eq!(escaped("a/b?c d%é"), "a%2Fb%3Fc%20d%25%C3%A9");
    }
}
