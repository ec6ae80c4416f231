//! What a hand-over takes beside moving bytes: from `Published`, which a prefill worker tells the gateway, until the gateway knows that decode has it all
//! and goes on. With the mock, whose KV is 16 bytes a token, so that hardly any bytes are moved.

use std::collections::BTreeSet;

use observe::explain::Account;

use super::Options;
use crate::bench::client::Load;
use crate::bench::page::Page;
use crate::bench::sample::Sample;
use crate::bench::server::{Server, Size, mocks};
use crate::bench::spread::Spread;
use crate::http::get;

const UP: [&str; 5] = ["--processes", "--prefill", "1", "--decode", "1"];

/// Requests before those that count: the first connects the workers.
const WARM_UP: u64 = 3;

/// The times of one round, in microseconds.
struct Times {
    /// Of whole hand-overs, in order.
    whole: Vec<f64>,
    /// Of the reads in them, their mean: by the reader's clock.
    read: f64,
    /// Tokens of the prompts, the mean.
    tokens: f64,
}

/// Measures, and adds a table.
///
/// # Panics
/// If the cluster does not do what it must.
pub(super) async fn measure(page: &mut Page, options: &Options) {
    page.line(&format!(
        "## Hand-overs\n\nFrom `Published` until the gateway has decode's word that it has the KV, at the gateway of `up {}` with mock engines, whose KV is 16 \
         bytes a token: what is not the moving of bytes. One request at a time, {} of them in a round, each round with a cluster of its own. \
         *Read*: the mean of the part that the KV transfer takes, by decode's clock. Contexts of the default model end at 8,192 tokens.\n",
        UP.join(" "),
        options.handovers
    ));
    page.head(&[
        "prompt tokens",
        "hand-over us, median",
        "99 of 100",
        "read us, mean",
    ]);
    for &prompt in &options.prompts {
        let mut rounds = Vec::new();
        for round in 0..options.rounds {
            eprintln!("hand-overs {prompt} {round}");
            rounds.push(take(prompt, round as u64, options).await);
        }
        let tell = |figure: fn(&Times) -> f64| format!("{:.0}", Spread::of(rounds.iter().map(figure)));
        page.row(&[
            tell(|times| times.tokens),
            tell(|times| times.whole[times.whole.len() / 2]),
            tell(|times| times.whole[times.whole.len() * 99 / 100]),
            tell(|times| times.read),
        ]);
    }
    page.line("");
}

async fn take(prompt: usize, round: u64, options: &Options) -> Times {
    let size = Size {
        streams: 16,
        tokens: 8_192,
    };
    let server = mocks(&UP, 2, size, &[]).await;
    let load = Load {
        streams: 1,
        prompt_tokens: prompt,
        answer_tokens: 2,
        requests: Some(options.handovers as u64),
        seed: 2 + 2 * round,
        ..server.load()
    };
    let warm_up = Load {
        requests: Some(WARM_UP),
        seed: 1 + 2 * round,
        ..load.clone()
    };
    Sample::take(&server, &warm_up).await.expect("answers");
    let before = Reads::of(&server).await;
    let known: BTreeSet<String> = ended(&server).await.into_iter().map(|room| room.room).collect();
    Sample::take(&server, &load).await.expect("answers");
    let reads = Reads::of(&server).await;
    let mut rooms = ended(&server).await;
    rooms.retain(|room| !known.contains(&room.room));
    let pulling = rooms.iter().flat_map(|room| &room.stretches);
    let pulling = pulling.filter(|stretch| stretch.phase == "pulling");
    let mut whole: Vec<f64> = pulling
        .map(|stretch| (stretch.to_us - stretch.from_us) as f64)
        .collect();
    assert!(!whole.is_empty(), "nothing was handed over");
    whole.sort_by(f64::total_cmp);
    let tokens: f64 = rooms.iter().map(|room| f64::from(room.prompt_tokens)).sum();
    Times {
        read: (reads.seconds - before.seconds) / (reads.count - before.count) * 1e6,
        tokens: tokens / rooms.len() as f64,
        whole,
    }
}

/// The gateway's accounts of the rooms that have ended, of which it keeps a good many.
async fn ended(server: &Server) -> Vec<Account> {
    let cluster = server.cluster();
    let mut all = Vec::new();
    for room in cluster.rooms_ended().await {
        let path = format!("/rooms/{}/explain", room.room);
        let answer = get(cluster.ports().admin, &path)
            .await
            .expect("the admin listener");
        let text = answer.text().await.expect("the admin listener");
        let accounts: Vec<Account> =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        all.extend(accounts);
    }
    all
}

/// All reads of decode so far.
struct Reads {
    count: f64,
    seconds: f64,
}

impl Reads {
    async fn of(server: &Server) -> Self {
        let metrics = server.cluster().metrics().await;
        Self {
            count: metrics.sum("innkeeper_kv_pull_seconds_count", ""),
            seconds: metrics.sum("innkeeper_kv_pull_seconds_sum", ""),
        }
    }
}
