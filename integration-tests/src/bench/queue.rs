//! `bench queue`: very many rooms that wait for room on a worker: what that takes, in which order they are admitted, and how fast one is given up.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::client::{Client, Load, Tally, Watch};
use super::page::Page;
use super::server::{Server, Size, mocks};
use super::spread::Spread;

/// How it is measured.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Rooms that wait.
    #[arg(long, default_value_t = 100_000)]
    pub rooms: usize,
    /// Requests that are given up.
    #[arg(long, default_value_t = 50)]
    pub aborts: usize,
    /// Writes docs/benchmarks-queue.md.
    #[arg(long)]
    pub keep: bool,
}

/// Rooms of one request.
const N: usize = 16;
const PROMPT_TOKENS: usize = 16;
/// So that the queue moves, slowly.
const STEP_US: u64 = 20_000;
const ANSWER_TOKENS: u32 = 8;
/// Requests that are sent at a time, so that they come in order.
const SETTLE: Duration = Duration::from_micros(500);
/// Until what was given up has been cleared away.
const REST: Duration = Duration::from_secs(2);
/// Until what was sent has come.
const PATIENCE: Duration = Duration::from_secs(120);

/// Requests on their way.
struct Waiting {
    requests: Vec<AbortHandle>,
    /// Numbers of the requests that have had a text, in that order.
    served: Arc<Mutex<Vec<usize>>>,
}

/// What was found.
struct Found {
    /// Rooms that waited at once, and how long after the first was asked for.
    count: f64,
    filled: Duration,
    /// The gateway's memory when it was idle, full, and emptied.
    mib: [f64; 3],
    /// How long it took until a request that was given up waited no more, and how long a look at the metrics takes; in milliseconds.
    aborts: Vec<f64>,
    looks: Vec<f64>,
    /// Numbers of the requests that were served, in that order.
    served: Vec<usize>,
    /// How long it took to give all up.
    emptied: Duration,
}

/// Measures, and gives a page in Markdown.
///
/// # Panics
/// If the cluster does not do what it must.
pub async fn queue(options: Options) -> String {
    let sets = [
        format!("mock.step_us={STEP_US}"),
        format!("worker.slots={N}"),
        format!("api.max_requests={}", options.rooms / N + 100),
        format!("api.max_n={N}"),
        format!("limits.queue_rooms={}", options.rooms + options.rooms / 5),
        "limits.queue_ms=3600000".to_owned(),
        "limits.request_ms=3600000".to_owned(),
    ];
    let size = Size {
        streams: N,
        tokens: 1_000,
    };
    let up = ["--processes", "--prefill", "1", "--decode", "1"];
    let server = mocks(&up, 2, size, &sets).await;
    let found = measure(&server, &options).await;
    let what = format!(
        "{} requests for {N} answers each, one after the other, to a gateway before a prefill and a decode worker with {N} slots, whose engines take \
         {STEP_US} us a step.",
        options.rooms / N
    );
    let mut page = Page::new("queue", "A long queue", &what);
    page.line(&format!("* innkeeper: {}\n", server.settings));
    page.head(&["", ""]);
    table(&mut page, &found);
    page.line("");
    page.done(options.keep)
}

async fn measure(server: &Server, options: &Options) -> Found {
    let idle = gateway_mib(server);
    let began = Instant::now();
    let waiting = fill(server, options.rooms / N).await;
    // Some have been served by then.
    let count = until_waiting(server, |count| count >= options.rooms as f64 * 0.98).await;
    let (filled, full) = (began.elapsed(), gateway_mib(server));
    let (aborts, looks) = abort(server, &waiting, options.aborts).await;
    let served = waiting
        .served
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    for request in &waiting.requests {
        request.abort();
    }
    let left = Instant::now();
    until_waiting(server, |count| count == 0.0).await;
    let emptied = left.elapsed();
    sleep(REST).await;
    Found {
        count,
        filled,
        mib: [idle, full, gateway_mib(server)],
        aborts,
        looks,
        served,
        emptied,
    }
}

fn table(page: &mut Page, found: &Found) {
    let Found {
        count,
        mib: [idle, full, after],
        served,
        ..
    } = found;
    let filled = found.filled.as_secs_f64();
    let given_up = |times: &[f64]| match times {
        [] => "–".to_owned(),
        times => format!("{:.1}", Spread::of(times.iter().copied())),
    };
    page.entry(
        "rooms that waited, seen at once",
        &format!("{count:.0}, {filled:.1} s after the first was asked for"),
    );
    page.entry(
        "gateway's memory idle, full, emptied (MiB)",
        &format!("{idle:.0}, {full:.0}, {after:.0}"),
    );
    page.entry(
        "a room that waits (KiB)",
        &format!("{:.1}", (full - idle) * 1024.0 / count),
    );
    page.entry(
        "requests served meanwhile; of those, before one that was asked earlier",
        &format!("{}; {}", served.len(), overtaken(served)),
    );
    page.entry(
        "giving one up, until its rooms wait no more (ms)",
        &given_up(&found.aborts),
    );
    page.entry("of that, one look at the metrics (ms)", &given_up(&found.looks));
    page.entry(
        "giving all up, until none waits (s)",
        &format!("{:.2}", found.emptied.as_secs_f64()),
    );
}

/// Asks so many times, in order.
async fn fill(server: &Server, requests: usize) -> Waiting {
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut load = Load {
        prompt_tokens: PROMPT_TOKENS,
        answer_tokens: ANSWER_TOKENS,
        ..server.load()
    };
    load.extra.insert("n".to_owned(), json!(N));
    let mut handles = Vec::new();
    for number in 0..requests {
        let (to, body, served) = (
            server.to,
            Bytes::from(load.body(number as u64, 0)),
            Arc::clone(&served),
        );
        let task = tokio::spawn(async move {
            let tally = Tally::default();
            let first = || served.lock().unwrap_or_else(PoisonError::into_inner).push(number);
            let watch = Watch {
                on_first: &first,
                ..Watch::of(&tally)
            };
            Client::new(to, true).ask("/v1/completions", body, &watch).await;
            let errors = tally.note(|report| std::mem::take(&mut report.errors));
            assert!(errors.is_empty(), "request {number} failed: {errors:?}");
        });
        handles.push(task.abort_handle());
        sleep(SETTLE).await;
    }
    Waiting {
        requests: handles,
        served,
    }
}

/// Gives up requests by chance of those that wait: how long until the gateway's metrics show it, and how long one look at those takes.
async fn abort(server: &Server, waiting: &Waiting, aborts: usize) -> (Vec<f64>, Vec<f64>) {
    let mut random = StdRng::seed_from_u64(1);
    let (mut times, mut looks) = (Vec::new(), Vec::new());
    for _ in 0..aborts {
        // Of the last two thirds: those have not been served.
        let all = waiting.requests.len();
        let request = &waiting.requests[random.random_range(all / 3..all)];
        if request.is_finished() {
            continue;
        }
        let looked = Instant::now();
        let before = count(server).await;
        looks.push(looked.elapsed().as_secs_f64() * 1e3);
        let began = Instant::now();
        request.abort();
        // The queue also moves by itself, but not by so many at once.
        while count(server).await > before - N as f64 {
            assert!(
                began.elapsed() < PATIENCE,
                "a request that was given up still waits"
            );
        }
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    (times, looks)
}

/// How many were served although one that was asked for earlier was served after them.
fn overtaken(served: &[usize]) -> usize {
    let mut least = usize::MAX;
    let mut count = 0;
    for &number in served.iter().rev() {
        count += usize::from(number > least);
        least = least.min(number);
    }
    count
}

async fn count(server: &Server) -> f64 {
    server
        .cluster()
        .metrics()
        .await
        .sum("innkeeper_rooms_waiting", "")
}

/// Waits until as many rooms wait as is wanted, and says how many.
async fn until_waiting(server: &Server, wanted: impl Fn(f64) -> bool) -> f64 {
    let began = Instant::now();
    loop {
        let count = count(server).await;
        if wanted(count) {
            return count;
        }
        assert!(began.elapsed() < PATIENCE, "{count} rooms wait");
        sleep(Duration::from_millis(100)).await;
    }
}

fn gateway_mib(server: &Server) -> f64 {
    server
        .usage()
        .processes
        .get("gateway")
        .map_or(f64::NAN, |used| used.memory_mib)
}

#[cfg(test)]
mod tests {
    use super::overtaken;

    #[test]
    fn who_overtakes_is_counted() {
        assert_eq!(overtaken(&[0, 1, 2, 3]), 0);
        assert_eq!(overtaken(&[1, 0, 2, 3]), 1);
        assert_eq!(overtaken(&[3, 0, 1, 2]), 1);
        assert_eq!(overtaken(&[1, 2, 3, 0]), 3);
    }
}
