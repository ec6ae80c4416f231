use observe::Workers;
use room::{NodeId, PhaseKind, RoomId, Span, Time, WaitsFor};
use runtime::RoomView;
use serde_json::Value;

use super::{Feed, GONE, Known};

fn view(seq: u64) -> RoomView {
    RoomView {
        room: RoomId {
            gateway: NodeId(0xab),
            seq,
        },
        request_id: format!("r\"{seq}"),
        generation: 1,
        phase: PhaseKind::Queued,
        born: at(1),
        since: at(1),
        waits_for: WaitsFor::Credit,
        no_worker: false,
        deadline: Some(at(100)),
        legs: Vec::new(),
        workers: Workers::default(),
        delivered: 0,
        stale_inputs: 0,
        outcome: None,
        ended_in: None,
        ended: None,
        trace_id: Some(5),
    }
}

fn at(ms: u64) -> Time {
    Time { micros: ms * 1_000 }
}

fn look(feed: &mut Feed, views: &[RoomView]) {
    feed.look(at(1), views, &|node| format!("w{}", node.0));
}

fn news(feed: &Feed, known: &mut Known) -> Value {
    let text = feed.news(known, true).expect("news");
    serde_json::from_str(&text).expect("JSON")
}

fn seqs(rows: &Value) -> Vec<u64> {
    let rows = rows.as_array().expect("a list");
    rows.iter().filter_map(|row| row["seq"].as_u64()).collect()
}

#[test]
fn a_watcher_gets_everything_once_and_then_what_changes() {
    let (mut feed, mut known) = (Feed::default(), Known::default());
    let mut views: Vec<RoomView> = (1..=3).map(view).collect();
    look(&mut feed, &views);
    let first = news(&feed, &mut known);
    assert_eq!(first["all"], true);
    assert_eq!(seqs(&first["rows"]), [1, 2, 3]);
    assert_eq!(first["rows"][0]["request"], "r\"1");
    assert_eq!(first["moving"].as_array().map(Vec::len), Some(3));
    look(&mut feed, &views);
    assert_eq!(feed.news(&mut known, true), None);

    views[1].phase = PhaseKind::Prefilling;
    views[1].waits_for = WaitsFor::Prompt {
        worker: NodeId(7),
        computed: 0,
        positions: 10,
    };
    views.remove(2);
    look(&mut feed, &views);
    let second = news(&feed, &mut known);
    assert_eq!(second["all"], false);
    assert_eq!(seqs(&second["rows"]), [2]);
    assert_eq!(second["rows"][0]["waits"], "w7 to compute the prompt");
    assert_eq!(second["gone"], serde_json::json!([3]));
    // A room that only goes on is numbers, and no row.
    views[1].waits_for = WaitsFor::Prompt {
        worker: NodeId(7),
        computed: 5,
        positions: 10,
    };
    look(&mut feed, &views);
    let third = news(&feed, &mut known);
    assert!(seqs(&third["rows"]).is_empty());
    assert_eq!(third["moving"], serde_json::json!([[2, 0, 5, 10, 100]]));
}

#[test]
fn what_moves_can_be_told_less_often_and_is_not_lost() {
    let (mut feed, mut known) = (Feed::default(), Known::default());
    let mut views = vec![view(1)];
    look(&mut feed, &views);
    news(&feed, &mut known);
    views[0].delivered = 4;
    look(&mut feed, &views);
    assert_eq!(feed.news(&mut known, false), None);
    look(&mut feed, &views);
    assert_eq!(
        news(&feed, &mut known)["moving"],
        serde_json::json!([[1, 4, 0, 0, 100]])
    );
}

#[test]
fn who_was_away_for_too_long_begins_anew() {
    let (mut feed, mut known, mut other) = (Feed::default(), Known::default(), Known::default());
    look(&mut feed, &[view(1), view(2)]);
    news(&feed, &mut known);
    news(&feed, &mut other);
    look(&mut feed, &[view(2)]);
    assert_eq!(news(&feed, &mut other)["gone"], serde_json::json!([1]));
    let many: Vec<RoomView> = (10..10 + GONE as u64 + 1).map(view).collect();
    look(&mut feed, &many);
    look(&mut feed, &[view(2)]);
    let anew = news(&feed, &mut known);
    assert_eq!(anew["all"], true);
    assert_eq!(seqs(&anew["rows"]), [2]);
    assert_eq!(anew["gone"], serde_json::json!([]));
    assert!(feed.gone.len() <= GONE);
}

#[test]
fn an_empty_cluster_is_news_too() {
    let (mut feed, mut known) = (Feed::default(), Known::default());
    look(&mut feed, &[]);
    assert_eq!(news(&feed, &mut known)["all"], true);
    assert_eq!(feed.news(&mut known, true), None);
}

#[test]
fn looks_are_shared() {
    let mut feed = Feed::default();
    assert!(feed.is_older_than(at(0), Span::from_millis(500)));
    feed.look(at(1_000), &[], &|_| String::new());
    assert!(!feed.is_older_than(at(1_499), Span::from_millis(500)));
    assert!(feed.is_older_than(at(1_500), Span::from_millis(500)));
}
