//! Clients that ask again as soon as they are answered, in this process.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::client::{Client, Tally, Watch};

/// What clients got.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Served {
    /// Tokens of answers, as the server counts them.
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
    let mut request = request.clone();
    request["stream_options"] = json!({ "include_usage": true });
    let request = Bytes::from(request.to_string());
    let tally = Tally::default();
    let mut tasks = JoinSet::new();
    for _ in 0..clients {
        let (request, tally) = (request.clone(), tally.clone());
        tasks.spawn(async move {
            let mut client = Client::new(to, true);
            let watch = Watch::of(&tally);
            while started.elapsed() < lasts {
                client.ask("/v1/completions", request.clone(), &watch).await;
            }
        });
    }
    tasks.join_all().await;
    let (tokens, errors) = tally.note(|report| (report.output_tokens, std::mem::take(&mut report.errors)));
    assert!(errors.is_empty(), "answers failed: {errors:?}");
    Served {
        tokens,
        lasted: started.elapsed(),
    }
}
