//! The loops.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep, sleep_until, timeout};

use super::exchange::{Client, Watch};
use super::plan::Load;
use super::report::{Report, Tally};

/// What the tasks of a load share.
struct Running {
    load: Load,
    tally: Tally,
    /// After this no request begins.
    until: Instant,
    /// Streams that have had a text.
    opened: AtomicU64,
}

/// Puts the load on its server. `on_open` is called once, when all streams that are held are open.
pub async fn run(load: Load, on_open: impl FnOnce()) -> Report {
    let started = Instant::now();
    let running = Arc::new(Running {
        until: started + Duration::from_secs_f64(load.seconds),
        load,
        tally: Tally::default(),
        opened: AtomicU64::new(0),
    });
    match running.load.rate {
        None => closed(&running).await,
        Some(rate) if running.load.hold => hold(&running, rate, on_open).await,
        Some(rate) => open(&running, rate).await,
    }
    let mut report = running.tally.note(std::mem::take);
    report.seconds = started.elapsed().as_secs_f64();
    report
}

impl Running {
    /// Asks once.
    async fn ask(&self, client: &mut Client, who: u64, turn: u64) {
        let body = Bytes::from(self.load.body(who, turn));
        let all = self.load.streams as u64;
        let watch = Watch {
            tally: &self.tally,
            period: self.load.period_ms.map(|ms| Duration::from_secs_f64(ms / 1e3)),
            on_first: &|| {
                self.opened.fetch_add(1, Ordering::Relaxed);
            },
            counts: &|| !self.load.hold || self.opened.load(Ordering::Relaxed) >= all,
        };
        client.ask(self.load.endpoint.path(), body, &watch).await;
    }

    fn client(&self) -> Client {
        Client::new(self.load.to, self.load.fresh)
    }
}

/// Clients that ask again as soon as they are answered.
async fn closed(running: &Arc<Running>) {
    let mut tasks = JoinSet::new();
    for who in 0..running.load.streams as u64 {
        let running = Arc::clone(running);
        tasks.spawn(async move {
            let mut client = running.client();
            for turn in 0..running.load.requests.unwrap_or(u64::MAX) {
                if Instant::now() >= running.until {
                    break;
                }
                running.ask(&mut client, who, turn).await;
            }
        });
    }
    tasks.join_all().await;
}

/// Requests at a fixed rate. A time at which too many are on their way is skipped, and that is told.
async fn open(running: &Arc<Running>, rate: f64) {
    let mut tasks = JoinSet::new();
    let on_their_way = Arc::new(AtomicUsize::new(0));
    let begins = Instant::now();
    for turn in 0..running.load.requests.unwrap_or(u64::MAX) {
        let at = begins + Duration::from_secs_f64(turn as f64 / rate);
        if at >= running.until {
            break;
        }
        sleep_until(at).await;
        // Those that have ended.
        while tasks.try_join_next().is_some() {}
        if on_their_way.load(Ordering::Relaxed) >= running.load.streams {
            running.tally.note(|report| report.skipped += 1);
            continue;
        }
        on_their_way.fetch_add(1, Ordering::Relaxed);
        let (running, on_their_way) = (Arc::clone(running), Arc::clone(&on_their_way));
        tasks.spawn(async move {
            running.ask(&mut running.client(), turn, 0).await;
            on_their_way.fetch_sub(1, Ordering::Relaxed);
        });
    }
    tasks.join_all().await;
}

/// How often it is looked whether all streams are open.
const LOOK: Duration = Duration::from_millis(20);
/// How long the last streams that were asked for may take to have a text.
const LAST_FIRST: Duration = Duration::from_secs(60);

/// Streams that are opened one after the other and then all open for as long as the load says.
async fn hold(running: &Arc<Running>, rate: f64, on_open: impl FnOnce()) {
    let mut tasks = JoinSet::new();
    let (cut, is_cut) = tokio::sync::watch::channel(());
    let mut pace = interval(Duration::from_secs_f64(1.0 / rate));
    for who in 0..running.load.streams as u64 {
        pace.tick().await;
        let (running, mut is_cut) = (Arc::clone(running), is_cut.clone());
        tasks.spawn(async move {
            let mut client = running.client();
            tokio::select! {
                () = running.ask(&mut client, who, 0) => {}
                _ = is_cut.changed() => {}
            }
        });
    }
    let all_open = async {
        while running.opened.load(Ordering::Relaxed) < running.load.streams as u64 {
            sleep(LOOK).await;
        }
    };
    // Else some never came: then there is nothing to hold.
    if timeout(LAST_FIRST, all_open).await.is_ok() {
        on_open();
        sleep(Duration::from_secs_f64(running.load.seconds)).await;
    }
    drop(cut);
    tasks.join_all().await;
}
