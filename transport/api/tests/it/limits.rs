//! Every limit on requests and connections.

use std::sync::atomic::Ordering;
use std::time::Duration;

use api::{DoorLimits, Limits};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{PROTOCOLS, Protocol, Server};
use crate::mock::{Act, MockSubmit, hello, text};

fn stream_body() -> Value {
    json!({"model": "m", "prompt": "x", "stream": true})
}

#[tokio::test]
async fn a_body_that_is_too_large() {
    let limits = Limits {
        body_bytes: 1000,
        ..Limits::default()
    };
    let server = Server::with(MockSubmit::new(hello), limits, DoorLimits::default()).await;
    for protocol in PROTOCOLS {
        for (length, status) in [(900, 200), (1000, 413), (100_000, 413)] {
            let body = json!({"model": "m", "prompt": "x".repeat(length)});
            let answer = server
                .call(protocol, Method::POST, "/v1/completions", &body)
                .await;
            assert_eq!(answer.status, status, "{protocol:?} {length}");
            if status == 413 {
                assert_eq!(answer.json().await["error"]["code"], "request_too_large");
            }
        }
    }
}

#[tokio::test]
async fn a_body_that_does_not_come() {
    let limits = Limits {
        body_read_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = Server::with(MockSubmit::new(hello), limits, DoorLimits::default()).await;
    let mut socket = TcpStream::connect(server.plain).await.unwrap();
    let head = "POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 12];
    socket.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 408");
}

#[tokio::test]
async fn a_body_of_another_type() {
    let server = Server::start(MockSubmit::new(hello)).await;
    let mut socket = TcpStream::connect(server.plain).await.unwrap();
    let head =
        "POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\n{}";
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 12];
    socket.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 415");
}

#[tokio::test]
async fn headers_that_are_too_large() {
    let doors = DoorLimits {
        header_bytes: 8192,
        ..DoorLimits::default()
    };
    let server = Server::with(MockSubmit::new(hello), Limits::default(), doors).await;
    let long = "x".repeat(20_000);
    for protocol in PROTOCOLS {
        let body = json!({"model": "m", "prompt": "x"});
        let mut conn = server.connect(protocol).await;
        let headers = [("x-long", long.as_str())];
        // Refused with 431, or by ending the stream: never served.
        let refused = match conn
            .call_with(Method::POST, "/v1/completions", &body, &headers)
            .await
        {
            Ok(answer) => answer.status == StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Err(_) => true,
        };
        assert!(refused, "{protocol:?}");
    }
    assert!(server.mock.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn headers_that_do_not_come() {
    let doors = DoorLimits {
        header_read: Duration::from_millis(50),
        ..DoorLimits::default()
    };
    let server = Server::with(MockSubmit::new(hello), Limits::default(), doors).await;
    for (addr, start) in [
        (server.plain, &b"GET / HTTP/1.1\r\nx"[..]),
        (server.secure, &b"\x16\x03"[..]),
    ] {
        let mut socket = TcpStream::connect(addr).await.unwrap();
        socket.write_all(start).await.unwrap();
        let mut rest = Vec::new();
        // Ends, whether with an answer, an end or a reset.
        let _ = socket.read_to_end(&mut rest).await;
    }
}

#[tokio::test]
async fn more_requests_than_allowed() {
    let limits = Limits {
        requests: 1,
        ..Limits::default()
    };
    let server = Server::with(
        MockSubmit::new(|_| Act::Hang(vec![text(0, "a")])),
        limits,
        DoorLimits::default(),
    )
    .await;
    for protocol in PROTOCOLS {
        let mut first = server
            .call(protocol, Method::POST, "/v1/completions", &stream_body())
            .await;
        first.read_until("a").await;
        let second = server
            .call(protocol, Method::POST, "/v1/completions", &stream_body())
            .await;
        assert_eq!(second.status, StatusCode::TOO_MANY_REQUESTS, "{protocol:?}");
        assert_eq!(second.header("retry-after"), Some("1"));
        drop(first);
        server.mock.until_open(0).await;
    }
}

#[tokio::test]
async fn a_connection_without_requests_is_closed() {
    let doors = DoorLimits {
        idle: Duration::from_millis(100),
        ..DoorLimits::default()
    };
    let server = Server::with(MockSubmit::new(hello), Limits::default(), doors).await;
    let mut silent = TcpStream::connect(server.plain).await.unwrap();
    assert_eq!(silent.read(&mut [0; 1]).await.unwrap_or(0), 0);
    for protocol in PROTOCOLS {
        let mut conn = server.connect(protocol).await;
        while conn.call(Method::GET, "/health/live", &Value::Null).await.is_ok() {
            // Longer than the limit: the next call finds the connection closed, sooner or later.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

#[tokio::test]
async fn a_silent_stream_is_kept_alive_with_comments() {
    let limits = Limits {
        keep_alive: Duration::from_millis(20),
        ..Limits::default()
    };
    let server = Server::with(
        MockSubmit::new(|_| Act::Hang(vec![text(0, "a")])),
        limits,
        DoorLimits::default(),
    )
    .await;
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
    let server = Server::with(MockSubmit::new(|_| flood()), Limits::default(), doors).await;
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

#[tokio::test]
async fn connections_beyond_the_limit_wait_or_are_refused() {
    let doors = DoorLimits {
        connections: 1,
        ..DoorLimits::default()
    };
    let server = Server::with(MockSubmit::new(hello), Limits::default(), doors).await;
    let mut first = server.connect(Protocol::Http1).await;
    first
        .call(Method::GET, "/health/live", &Value::Null)
        .await
        .unwrap();
    let config = api::client::ClientConfig::new(server.secure, "localhost", server.cert_pem.clone().into());
    assert!(
        api::client::Client::connect(config).await.is_err(),
        "a second connection was let in"
    );
    let waiting = server.call(Protocol::Http1, Method::GET, "/health/live", &Value::Null);
    drop(first);
    assert_eq!(waiting.await.status, StatusCode::OK);
}
