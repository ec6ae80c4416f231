//! An answer on its way.

use std::time::Duration;

use bytes::{Buf, Bytes};
use h3::client::RequestStream;
use http::{HeaderMap, Response, StatusCode};

use super::sse::Decoder;
use super::{ClientError, broken, within};

/// The largest answer that is read in one piece, in bytes.
const TEXT_BYTES: usize = 16 << 20;

/// The head of an answer, and the stream of its body. Dropping it before the end resets the stream: the server aborts
/// the request.
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    stream: RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>,
    silence: Duration,
    decoder: Decoder,
}

impl Reply {
    pub(super) fn new(
        head: Response<()>,
        stream: RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>,
        silence: Duration,
    ) -> Self {
        let (parts, ()) = head.into_parts();
        Self {
            status: parts.status,
            headers: parts.headers,
            stream,
            silence,
            decoder: Decoder::default(),
        }
    }

    /// The next bytes; `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        let reading = async {
            let data = self.stream.recv_data().await.map_err(broken)?;
            Ok(data.map(|mut data| data.copy_to_bytes(data.remaining())))
        };
        within("the next piece of the answer", self.silence, reading).await
    }

    /// The whole body, at most 16 MiB.
    pub async fn text(&mut self) -> Result<String, ClientError> {
        let mut all = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if all.len() + chunk.len() > TEXT_BYTES {
                return Err(ClientError::Malformed(format!(
                    "it is larger than {TEXT_BYTES} bytes"
                )));
            }
            all.extend_from_slice(&chunk);
        }
        String::from_utf8(all).map_err(|error| ClientError::Malformed(error.to_string()))
    }

    /// The data of the next server-sent event; `None` at the end. Comments are passed over.
    pub async fn event(&mut self) -> Result<Option<String>, ClientError> {
        loop {
            if let Some(event) = self.decoder.next_event() {
                return Ok(Some(event));
            }
            match self.chunk().await? {
                Some(chunk) => self.decoder.feed(&chunk)?,
                None => return Ok(None),
            }
        }
    }
}
