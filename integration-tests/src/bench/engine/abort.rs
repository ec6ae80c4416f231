//! How long a server goes on computing for somebody who has left while his prompt was being read.

use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

use super::{KINDS, Options};
use crate::bench::client::{Apart, Load};
use crate::bench::page::Page;
use crate::bench::server::{Kind, Server};
use crate::bench::spread::Spread;

/// It takes seconds to read, on any server here.
const PROMPT: usize = 7_000;
/// When the client leaves: the prompt is being read.
const AFTER: Duration = Duration::from_millis(300);
/// How often it is looked whether the server still works.
const LOOK: Duration = Duration::from_millis(10);
/// It has stopped once it has used less than a fifth of a core for so many looks; the first of them is when it stopped.
const CALM: usize = 5;
/// It is not waited longer.
const LIMIT: Duration = Duration::from_secs(30);

/// Measures, and adds a table.
pub(super) async fn measure(page: &mut Page, options: &Options) {
    page.line(&format!(
        "A client that leaves while its prompt of {PROMPT} tokens is read, {} ms after it asked: how long the server still works, seen at its \
         processor time every {} ms.\n",
        AFTER.as_millis(),
        LOOK.as_millis()
    ));
    page.head(&["server", "works on for ms"]);
    let mut found: [Vec<Result<f64, String>>; 2] = Default::default();
    for round in 0..options.rounds {
        for turn in 0..KINDS.len() {
            let which = (round + turn) % KINDS.len();
            found[which].push(once(KINDS[which], round, options).await);
        }
    }
    for (kind, found) in KINDS.iter().zip(found) {
        let figures: Result<Vec<f64>, String> = found.into_iter().collect();
        let told = figures.map(|figures| format!("{:.0}", Spread::of(figures)));
        page.row(&[
            kind.name().to_owned(),
            told.unwrap_or_else(|error| format!("failed: {error}")),
        ]);
    }
    page.line("");
}

async fn once(kind: Kind, round: usize, options: &Options) -> Result<f64, String> {
    let server = kind.start(options.size(2, PROMPT), &options.peers).await?;
    let load = Load {
        prompt_tokens: PROMPT,
        answer_tokens: 1,
        seed: 1 + round as u64,
        ..server.load()
    };
    // Dropping it kills the process, which cuts its connection.
    let asking = Apart::start(&load);
    // It must have begun, and not be over.
    wait_until(&server, true).await?;
    sleep(AFTER).await;
    if still(&server, LOOK).await < 0.2 {
        return Err("the prompt was read before the client left".to_owned());
    }
    drop(asking);
    let left = Instant::now();
    let stopped = wait_until(&server, false).await?;
    Ok(stopped.saturating_duration_since(left).as_secs_f64() * 1e3)
}

/// Waits until the server works, or until it does not, and gives when that began.
async fn wait_until(server: &Server, works: bool) -> Result<Instant, String> {
    let looking = async {
        let mut since = (Instant::now(), 0);
        while since.1 < CALM {
            let began = Instant::now();
            let does = still(server, LOOK).await >= 0.2;
            since = match (does == works, since.1) {
                (false, _) => (began, 0),
                (true, 0) => (began, 1),
                (true, looks) => (since.0, looks + 1),
            };
        }
        since.0
    };
    let what = if works { "does not begin" } else { "does not stop" };
    timeout(LIMIT, looking)
        .await
        .map_err(|_| format!("{what} within {} s", LIMIT.as_secs()))
}

/// Cores that a server uses during some time.
async fn still(server: &Server, during: Duration) -> f64 {
    let (before, began) = (server.usage().thread_seconds(), Instant::now());
    sleep(during).await;
    (server.usage().thread_seconds() - before) / began.elapsed().as_secs_f64()
}
