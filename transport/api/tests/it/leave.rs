//! When the client leaves, the service hears of it: on every protocol, in every phase, streaming or not.

use http::Method;
use serde_json::json;

use crate::harness::{PROTOCOLS, Protocol, Server};
use crate::mock::{Act, MockSubmit, text};

/// How the client leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    /// It gives up one request; the connection stays, where the protocol allows.
    Stream,
    /// It closes the connection.
    Connection,
}

fn body(stream: bool) -> serde_json::Value {
    json!({"model": "m", "prompt": "x", "stream": stream})
}

/// Leaves while no byte of the answer has come.
async fn leaves_early(server: &Server, protocol: Protocol, stream: bool, leaving: Leaving) {
    let mut conn = server.connect(protocol).await;
    let body = body(stream);
    {
        let call = conn.call(Method::POST, "/v1/completions", &body);
        tokio::select! {
            _ = call => panic!("{protocol:?} {stream}: an answer came"),
            () = server.mock.until_open(1) => {}
        }
    }
    let held = (leaving == Leaving::Stream).then_some(conn);
    server.mock.until_open(0).await;
    drop(held);
}

async fn check_early(act: fn() -> Act) {
    let server = Server::start(MockSubmit::new(move |_| act())).await;
    for protocol in PROTOCOLS {
        for stream in [false, true] {
            for leaving in [Leaving::Stream, Leaving::Connection] {
                leaves_early(&server, protocol, stream, leaving).await;
            }
        }
    }
    assert_eq!(server.mock.seen.lock().unwrap().len(), PROTOCOLS.len() * 4);
}

#[tokio::test]
async fn while_it_is_submitted() {
    check_early(|| Act::Ponder).await;
}

#[tokio::test]
async fn while_the_first_token_is_awaited() {
    check_early(|| Act::Hang(Vec::new())).await;
}

#[tokio::test]
async fn in_the_middle_of_a_stream() {
    let server = Server::start(MockSubmit::new(|_| Act::Hang(vec![text(0, "first")]))).await;
    for protocol in PROTOCOLS {
        for leaving in [Leaving::Stream, Leaving::Connection] {
            let mut conn = server.connect(protocol).await;
            let mut answer = conn
                .call(Method::POST, "/v1/completions", &body(true))
                .await
                .unwrap();
            answer.read_until("first").await;
            server.mock.until_open(1).await;
            let held = (leaving == Leaving::Stream).then_some(conn);
            drop(answer);
            server.mock.until_open(0).await;
            drop(held);
        }
    }
}

#[tokio::test]
async fn in_the_middle_of_an_answer_that_is_not_streamed() {
    let server = Server::start(MockSubmit::new(|_| Act::Hang(vec![text(0, "first")]))).await;
    for protocol in PROTOCOLS {
        for leaving in [Leaving::Stream, Leaving::Connection] {
            leaves_early(&server, protocol, false, leaving).await;
        }
    }
}

/// A connection that one request has left still serves the next, and others that it carries go on.
#[tokio::test]
async fn one_request_leaves_and_its_neighbours_stay() {
    let server = Server::start(MockSubmit::new(|_| Act::Hang(vec![text(0, "first")]))).await;
    for protocol in [Protocol::Http2, Protocol::Http2Tls, Protocol::Http3] {
        let mut conn = server.connect(protocol).await;
        let mut leaver = conn
            .call(Method::POST, "/v1/completions", &body(true))
            .await
            .unwrap();
        let mut stayer = conn
            .call(Method::POST, "/v1/completions", &body(true))
            .await
            .unwrap();
        leaver.read_until("first").await;
        stayer.read_until("first").await;
        server.mock.until_open(2).await;
        drop(leaver);
        server.mock.until_open(1).await;
        let mut next = conn
            .call(Method::POST, "/v1/completions", &body(true))
            .await
            .unwrap();
        next.read_until("first").await;
        server.mock.until_open(2).await;
        drop((next, stayer));
        server.mock.until_open(0).await;
    }
}
