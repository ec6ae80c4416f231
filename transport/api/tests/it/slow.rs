//! Clients that take their answer slowly, or not at all.

use std::sync::atomic::Ordering;
use std::time::Duration;

use api::{DoorLimits, Limits};
use http::Method;
use serde_json::{Value, json};

use crate::harness::{PROTOCOLS, Protocol, Server};
use crate::mock::{Act, MockSubmit, hello, text};

fn stream_body() -> Value {
    json!({"model": "m", "prompt": "x", "stream": true})
}

#[tokio::test]
async fn a_silent_stream_is_kept_alive_with_comments() {
    let limits = Limits {
        keep_alive: Duration::from_millis(20),
        ..Limits::default()
    };
    let server = Server::limited(MockSubmit::new(|_| Act::Hang(vec![text(0, "a")])), limits).await;
    for protocol in PROTOCOLS {
        let mut answer = server
            .call(protocol, Method::POST, "/v1/completions", &stream_body())
            .await;
        answer.read_until("a").await;
        let more = answer.read_until("still here").await;
        assert!(more.starts_with(": still here\n\n"), "{more:?}");
    }
}

/// Events of 64 KiB, without end.
fn flood() -> Act {
    Act::Play(Box::new(std::iter::repeat_with(|| {
        text(0, &"x".repeat(64 << 10))
    })))
}

#[tokio::test]
async fn a_slow_reader_stops_its_own_stream() {
    let server = Server::start(MockSubmit::new(|_| flood())).await;
    for protocol in PROTOCOLS {
        let mut conn = server.connect(protocol).await;
        let before = server.mock.sent.load(Ordering::SeqCst);
        let mut answer = conn
            .call(Method::POST, "/v1/completions", &stream_body())
            .await
            .unwrap();
        answer.read_until("x").await;
        // Until nothing more is taken: the buffers on the way are full.
        let mut taken = usize::MAX;
        while taken != server.mock.sent.load(Ordering::SeqCst) {
            taken = server.mock.sent.load(Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        // Sockets on loopback may hold some MiB; without back pressure this would grow for ever.
        assert!(taken - before < 1000, "{protocol:?} took {}", taken - before);
        drop((answer, conn));
        server.mock.until_open(0).await;
    }
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_cut_off() {
    let doors = DoorLimits {
        stall: Duration::from_millis(300),
        ..DoorLimits::default()
    };
    let server = Server::behind(MockSubmit::new(|_| flood()), doors).await;
    for protocol in PROTOCOLS {
        let mut conn = server.connect(protocol).await;
        let mut answer = conn
            .call(Method::POST, "/v1/completions", &stream_body())
            .await
            .unwrap();
        answer.read_until("x").await;
        // The client holds on to its stream, and reads no more.
        server.mock.until_open(0).await;
        drop((answer, conn));
    }
}

/// A stalled answer is no reason to end those of others, who may well be behind the same proxy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_streams_share_a_connection_only_the_stalled_one_is_cut() {
    let doors = DoorLimits {
        stall: Duration::from_secs(3),
        ..DoorLimits::default()
    };
    let mock = MockSubmit::new(|request| match request.model.as_str() {
        "slow" => flood(),
        _ => Act::Hang(vec![text(0, "a")]),
    });
    let server = Server::behind(mock, doors).await;
    for protocol in [Protocol::Http2, Protocol::Http3] {
        let mut conn = server.connect(protocol).await;
        let mut neighbour = conn
            .call(Method::POST, "/v1/completions", &stream_body())
            .await
            .unwrap();
        neighbour.read_until("a").await;
        let mut body = stream_body();
        body["model"] = json!("slow");
        let mut slow = conn.call(Method::POST, "/v1/completions", &body).await.unwrap();
        slow.read_until("x").await;
        // It is not read any more.
        server.mock.until_open(1).await;
        let mut third = conn
            .call(Method::POST, "/v1/completions", &stream_body())
            .await
            .unwrap();
        third.read_until("a").await;
        server.mock.until_open(2).await;
        drop((neighbour, third, slow, conn));
        server.mock.until_open(0).await;
    }
}

/// A large answer that is taken slowly, but is taken, is neither a stalled one nor an idle connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_answer_may_take_longer_than_any_limit() {
    const BYTES: usize = 16 << 20;
    let doors = DoorLimits {
        stall: Duration::from_secs(5),
        idle: Duration::from_millis(500),
        ..DoorLimits::default()
    };
    let large = axum::Router::new().route("/large", axum::routing::get(async || vec![b'x'; BYTES]));
    let server = Server::of(MockSubmit::new(|_| flood()), large, doors).await;
    // A hundred pauses: over TCP the connection must not count as idle meanwhile, over QUIC the answer not as stalled.
    for (protocol, pause_ms) in [
        (Protocol::Http1, 15),
        (Protocol::Http2, 15),
        (Protocol::Http3, 70),
    ] {
        let mut conn = server.connect(protocol).await;
        let mut answer = conn.call(Method::GET, "/large", &Value::Null).await.unwrap();
        let (mut taken, mut pause_at) = (0, 0);
        while let Some(chunk) = answer
            .chunk()
            .await
            .unwrap_or_else(|error| panic!("{protocol:?}: {error}"))
        {
            taken += chunk.len();
            if taken >= pause_at {
                pause_at += BYTES / 100;
                tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            }
        }
        assert_eq!(taken, BYTES, "{protocol:?}");
    }
}

/// What never stops is ended by the deadline, also where something is always ready.
#[tokio::test]
async fn the_deadline_ends_what_never_stops() {
    let server = Server::start(MockSubmit::new(|_| flood())).await;
    for protocol in PROTOCOLS {
        let body = json!({"model": "m", "prompt": "x", "stream": true, "timeout": 0.1});
        let events = server
            .call(protocol, Method::POST, "/v1/completions", &body)
            .await
            .events()
            .await;
        let last = events.last().unwrap();
        assert!(last.contains("deadline_exceeded"), "{protocol:?}: {last}");
        server.mock.until_open(0).await;
    }
}

#[tokio::test]
async fn an_answer_too_large_to_hold_must_be_streamed() {
    let limits = Limits {
        answer_bytes: 1 << 20,
        ..Limits::default()
    };
    let mock = MockSubmit::new(|request| match request.model.as_str() {
        "endless" => flood(),
        _ => hello(request),
    });
    let server = Server::limited(mock, limits).await;
    let prompt = "x".repeat(300 << 10);
    for body in [
        json!({"model": "endless", "prompt": "x"}),
        // Every answer begins with the prompt.
        json!({"model": "m", "prompt": prompt, "echo": true, "n": 4}),
    ] {
        let answer = server.post("/v1/completions", &body).await;
        assert_eq!(answer.status, 400);
        let error = answer.json().await["error"].take();
        let (code, param) = (json!("answer_too_large"), json!("stream"));
        assert_eq!((&error["code"], &error["param"]), (&code, &param));
        server.mock.until_open(0).await;
    }
    let body = json!({"model": "m", "prompt": prompt, "echo": true, "n": 4, "stream": true});
    let events = server.post("/v1/completions", &body).await.events().await;
    assert_eq!(events.last().map(String::as_str), Some("[DONE]"));
}
