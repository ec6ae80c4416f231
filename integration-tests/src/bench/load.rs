//! Clients that ask again as soon as they are answered.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinSet;

use crate::http::post;

/// What clients got.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Served {
    /// Tokens of answers, as events of their streams.
    pub(super) tokens: u64,
    /// Time in which they came.
    pub(super) lasted: Duration,
}

/// So many clients for so long. Every answer must come to its end.
///
/// # Panics
/// If one does not.
pub(super) async fn drive(to: SocketAddr, clients: usize, lasts: Duration, request: &Value) -> Served {
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..clients {
        let request = request.clone();
        tasks.spawn(async move {
            let mut tokens = 0;
            while started.elapsed() < lasts {
                tokens += answered(to, &request).await.expect("an answer");
            }
            tokens
        });
    }
    let tokens = tasks.join_all().await.into_iter().sum();
    Served {
        tokens,
        lasted: started.elapsed(),
    }
}

/// How many events of a token an answer had. They are counted, not read: a load generator must cost less than what it loads.
async fn answered(to: SocketAddr, request: &Value) -> Result<u64, String> {
    let mut response = post(to, "/v1/completions", request).await?;
    if response.status != 200 {
        let status = response.status;
        return Err(format!("{status}: {}", response.text().await?));
    }
    let (mut events, mut last) = (0, Vec::new());
    while let Some(bytes) = response.next().await? {
        events += bytes.windows(2).filter(|pair| *pair == b"\n\n").count() as u64;
        let kept = last.len() + bytes.len();
        last.extend_from_slice(&bytes);
        last.drain(..kept.saturating_sub(END.len()));
    }
    if last != END {
        return Err(format!("a stream ends with {:?}", String::from_utf8_lossy(&last)));
    }
    // The last two say why it ended, and that it did.
    Ok(events.saturating_sub(2))
}

/// How a stream ends.
const END: &[u8] = b"data: [DONE]\n\n";
