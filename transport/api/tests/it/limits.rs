//! Every limit on requests and connections.

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
async fn headers_that_are_too_large() {
    let doors = DoorLimits {
        header_bytes: 8192,
        ..DoorLimits::default()
    };
    let server = Server::behind(MockSubmit::new(hello), doors).await;
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
    let server = Server::behind(MockSubmit::new(hello), doors).await;
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
    // So must those of the second request.
    let mut socket = TcpStream::connect(server.plain).await.unwrap();
    let head = "GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n";
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.read_exact(&mut [0; 15]).await.unwrap();
    socket.write_all(&head.as_bytes()[..20]).await.unwrap();
    let _ = socket.read_to_end(&mut Vec::new()).await;
}

/// The time for headers runs once they have begun: between two requests a connection may be idle for longer.
#[tokio::test]
async fn a_connection_may_be_idle_for_longer_than_headers_may_take() {
    let doors = DoorLimits {
        header_read: Duration::from_millis(200),
        ..DoorLimits::default()
    };
    let server = Server::behind(MockSubmit::new(hello), doors).await;
    for protocol in PROTOCOLS {
        let mut conn = server.connect(protocol).await;
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let answer = conn
                .call(Method::GET, "/health/live", &Value::Null)
                .await
                .unwrap();
            assert_eq!(answer.text().await, "live\n", "{protocol:?}");
        }
    }
}

#[tokio::test]
async fn more_streams_than_allowed_wait() {
    let doors = DoorLimits {
        streams: 1,
        ..DoorLimits::default()
    };
    let server = Server::behind(MockSubmit::new(|_| Act::Hang(vec![text(0, "a")])), doors).await;
    for protocol in [Protocol::Http2, Protocol::Http3] {
        let mut conn = server.connect(protocol).await;
        let mut first = conn
            .call(Method::POST, "/v1/completions", &stream_body())
            .await
            .unwrap();
        first.read_until("a").await;
        let body = stream_body();
        let mut second = Box::pin(conn.call(Method::POST, "/v1/completions", &body));
        let early = tokio::time::timeout(Duration::from_millis(300), &mut second).await;
        assert!(early.is_err(), "{protocol:?}: a second request was served");
        drop(first);
        second.await.unwrap().read_until("a").await;
        server.mock.until_open(0).await;
    }
}

#[tokio::test]
async fn more_requests_than_allowed() {
    let limits = Limits {
        requests: 1,
        ..Limits::default()
    };
    let server = Server::limited(MockSubmit::new(|_| Act::Hang(vec![text(0, "a")])), limits).await;
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
    let server = Server::behind(MockSubmit::new(hello), doors).await;
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
async fn connections_beyond_the_limit_wait_or_are_refused() {
    let doors = DoorLimits {
        connections: 1,
        ..DoorLimits::default()
    };
    let server = Server::behind(MockSubmit::new(hello), doors).await;
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
