//! The loops against a small server that answers as told.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use super::plan::Load;
use super::report::Report;

/// Two tokens in two texts, of which the second comes later; then what was used.
const TEXTS: [&str; 3] = [
    "data: {\"choices\":[{\"text\":\"a\"}]}\n\n",
    "data: {\"choices\":[{\"text\":\"b\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
];

/// A server that answers every request so, or turns it away; with this pause before each piece.
async fn server(pause: Duration, status: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(stream, pause, status));
        }
    });
    to
}

async fn serve(mut stream: TcpStream, pause: Duration, status: &str) {
    let mut unread = Vec::new();
    // A client that leaves ends it.
    while read_request(&mut stream, &mut unread).await.is_some() {
        let head = format!("HTTP/1.1 {status}\r\ntransfer-encoding: chunked\r\n\r\n");
        if stream.write_all(head.as_bytes()).await.is_err() {
            return;
        }
        for (number, piece) in TEXTS.into_iter().chain([""]).enumerate() {
            // An hour would be for ever: the first text does not wait for it.
            if number > 0 || pause < Duration::from_secs(3_600) {
                sleep(pause).await;
            }
            let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
            if stream.write_all(chunk.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// Reads one request away.
async fn read_request(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Option<()> {
    loop {
        let text = String::from_utf8_lossy(unread).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split("content-length: ").nth(1)?;
            let length: usize = length.split("\r\n").next()?.parse().ok()?;
            if body.len() >= length {
                unread.drain(..head.len() + 4 + length);
                return Some(());
            }
        }
        if stream.read_buf(unread).await.ok()? == 0 {
            return None;
        }
    }
}

async fn run(load: Load) -> Report {
    super::run(load, || ()).await
}

#[tokio::test]
async fn clients_ask_again_over_their_connections() {
    let load = Load {
        streams: 3,
        requests: Some(4),
        ..Load::new(server(Duration::ZERO, "200 OK").await, "m")
    };
    let report = run(load.clone()).await;
    assert_eq!((report.requests, report.failed, report.connections), (12, 0, 3));
    assert_eq!(
        (report.prompt_tokens, report.output_tokens, report.texts),
        (60, 24, 24)
    );
    assert_eq!(
        (
            report.first.count(),
            report.gaps.count(),
            report.per_token.count()
        ),
        (12, 12, 12)
    );
    let fresh = run(Load { fresh: true, ..load }).await;
    assert_eq!((fresh.requests, fresh.connections), (12, 12));
}

#[tokio::test]
async fn times_are_those_between_texts() {
    let pause = Duration::from_millis(30);
    let load = Load::new(server(pause, "200 OK").await, "m");
    let report = run(load).await;
    for times in [&report.first, &report.gaps, &report.per_token] {
        assert_eq!(times.count(), 1);
        // How much later it may be is the machine's affair.
        assert!(times.quantile_ms(0.5) >= 29.0, "{report:?}");
    }
    assert!(report.whole.quantile_ms(0.5) >= 100.0);
}

#[tokio::test]
async fn what_is_turned_away_has_failed() {
    let load = Load {
        requests: Some(7),
        ..Load::new(server(Duration::ZERO, "429 Too Many Requests").await, "m")
    };
    let report = run(load).await;
    assert_eq!((report.requests, report.failed, report.errors.len()), (0, 7, 4));
    assert!(report.errors[0].starts_with("429"), "{:?}", report.errors);
}

#[tokio::test]
async fn an_open_loop_asks_at_its_rate_and_never_beyond_its_bound() {
    let load = Load {
        streams: 2,
        requests: Some(10),
        rate: Some(1_000.0),
        ..Load::new(server(Duration::from_millis(50), "200 OK").await, "m")
    };
    let report = run(load).await;
    assert_eq!(report.requests + report.skipped, 10);
    assert!(report.requests >= 2 && report.failed == 0, "{report:?}");
}

#[tokio::test]
async fn streams_are_held_and_then_cut() {
    let load = Load {
        streams: 5,
        rate: Some(1_000.0),
        hold: true,
        seconds: 0.05,
        // It would be an hour until the second text.
        ..Load::new(server(Duration::from_secs(3_600), "200 OK").await, "m")
    };
    let mut opened = false;
    let report = super::run(load, || opened = true).await;
    assert!(opened);
    assert_eq!((report.first.count(), report.requests, report.failed), (5, 0, 0));
}
