//! `GET /events`: the cluster as it changes, as server-sent events. What a watcher gets is made when it can take it: one that reads slowly
//! gets less, and costs no memory.
//!
//! ```text
//!   event: overview   the cluster at a glance; the first has the series of the last minutes, those after it only the new seconds
//!   event: rooms      rooms that are new or changed, rooms that are gone, and what moves: see `feed`
//! ```

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, Sse};
use futures_util::{Stream, stream};
use room::Span;
use tokio::time::{MissedTickBehavior, interval};

use super::feed::Known;
use super::overview::{PhaseRow, overview};
use super::{Desk, Office};

/// Between two looks at the rooms.
const TICK: Duration = Duration::from_millis(500);

/// A look is shared by all who watch, if it is not older than this.
const FRESH: Span = Span::from_millis(400);

/// In every so manieth look what moves is told, and the overview.
const SLOW: u64 = 2;

/// What is known of one watcher.
struct Watcher {
    office: Desk,
    ticks: tokio::time::Interval,
    tick: u64,
    known: Known,
    /// The first second that it has not got.
    from_s: u64,
    /// What is still to be sent of this tick.
    waiting: Vec<Event>,
}

/// The stream. Ends when the gateway stops.
pub(super) async fn events(
    State(office): State<Desk>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>> + Send> {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let watcher = Watcher {
        office,
        ticks,
        tick: 0,
        known: Known::default(),
        from_s: 0,
        waiting: Vec::new(),
    };
    Sse::new(stream::unfold(watcher, Watcher::next))
}

impl Watcher {
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            if let Some(event) = self.waiting.pop() {
                return Some((Ok(event), self));
            }
            let stop = self.office.about.stop.clone();
            tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                _ = self.ticks.tick() => {}
            }
            self.look();
        }
    }

    fn look(&mut self) {
        let slow = self.tick.is_multiple_of(SLOW);
        self.tick += 1;
        let (news, phases) = rooms(&self.office, &mut self.known, slow);
        if let Some(news) = news {
            self.waiting.push(Event::default().event("rooms").data(news));
        }
        if slow {
            let glance = overview(&self.office, self.from_s, Some(phases));
            self.from_s = glance.series.from_s + glance.series.opened.len() as u64;
            // Strings and numbers: JSON can say it. Sent first.
            let text = serde_json::to_string(&glance).unwrap_or_default();
            self.waiting.push(Event::default().event("overview").data(text));
        }
    }
}

/// What is new of the rooms, and how many are in each phase.
fn rooms(office: &Office, known: &mut Known, moving: bool) -> (Option<String>, Vec<PhaseRow>) {
    let mut feed = office.feed();
    let now = office.gateway.now();
    if feed.is_older_than(now, FRESH) {
        let roster = &office.about.roster;
        feed.look(now, &office.gateway.rooms(), &|node| {
            roster.called(node).to_string()
        });
    }
    (feed.news(known, moving), feed.phases())
}
