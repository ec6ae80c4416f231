//! The bodies of requests: their size, their time, their memory, their type.

use std::time::Duration;

use api::Limits;
use bytes::{Buf, Bytes};
use futures_util::stream;
use http::{Method, Request, header};
use http_body_util::StreamBody;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::harness::{PROTOCOLS, Server};
use crate::mock::{MockSubmit, hello};

const PATH: &str = "/v1/completions";

/// A server that takes bodies of 1000 bytes.
async fn narrow() -> Server {
    let limits = Limits {
        body_bytes: 1000,
        ..Limits::default()
    };
    Server::limited(MockSubmit::new(hello), limits).await
}

/// Opens a connection and sends what is given, as it stands.
async fn say(server: &Server, what: &str) -> TcpStream {
    let mut socket = TcpStream::connect(server.plain).await.unwrap();
    socket.write_all(what.as_bytes()).await.unwrap();
    socket
}

/// The status of the next answer.
async fn status(socket: &mut (impl AsyncRead + Unpin)) -> String {
    let mut line = [0; 12];
    socket.read_exact(&mut line).await.unwrap();
    String::from_utf8_lossy(&line[9..]).into_owned()
}

fn head(more: &str) -> String {
    format!("POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{more}\r\n\r\n")
}

/// On every door a prompt of so many bytes is answered so, and with this error where there is one.
async fn check(server: &Server, path: &str, length: usize, status: u16, code: Option<&str>) {
    let body = json!({"model": "m", "prompt": "x".repeat(length)});
    for protocol in PROTOCOLS {
        let answer = server.call(protocol, Method::POST, path, &body).await;
        assert_eq!(answer.status, status, "{protocol:?} {length}");
        let answer = answer.json().await;
        assert_eq!(answer["error"]["code"].as_str(), code, "{protocol:?} {length}");
    }
}

#[tokio::test]
async fn too_large() {
    let server = narrow().await;
    check(&server, PATH, 900, 200, None).await;
    check(&server, PATH, 1000, 413, Some("request_too_large")).await;
    check(&server, PATH, 100_000, 413, Some("request_too_large")).await;
}

/// The client is still sending when the answer comes, whichever it is, and more than any buffer on the way would take.
#[tokio::test]
async fn far_too_large() {
    let server = Server::start(MockSubmit::new(hello)).await;
    check(&server, PATH, 20 << 20, 413, Some("request_too_large")).await;
    check(&server, "/nowhere", 20 << 20, 404, Some("unknown_url")).await;
}

/// Not a byte of the body is sent: its announced length is enough.
#[tokio::test]
async fn too_large_by_its_own_account_is_refused_unread() {
    let server = narrow().await;
    let mut socket = say(&server, &head("content-length: 1001")).await;
    assert_eq!(status(&mut socket).await, "413");
    let mut socket = say(&server, &head("content-length: 1001\r\nexpect: 100-continue")).await;
    assert_eq!(status(&mut socket).await, "413");

    let request = || {
        Request::post(format!("https://localhost{PATH}"))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONTENT_LENGTH, 1001)
    };
    let io = TokioIo::new(TcpStream::connect(server.plain).await.unwrap());
    let (mut send, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io)
        .await
        .unwrap();
    let connection = tokio::spawn(connection);
    let silent = StreamBody::new(stream::pending::<Result<http_body::Frame<Bytes>, std::io::Error>>());
    let answer = send.send_request(request().body(silent).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 413);
    connection.abort();

    let (_endpoint, quic) = server.quic().await;
    let (_driver, mut send) = h3::client::new(h3_quinn::Connection::new(quic)).await.unwrap();
    let mut stream = send.send_request(request().body(()).unwrap()).await.unwrap();
    assert_eq!(stream.recv_response().await.unwrap().status(), 413);
}

#[tokio::test]
async fn of_unknown_length() {
    let server = narrow().await;
    let frame = json!({"model": "m", "prompt": ""}).to_string().len();
    for (length, expected) in [(1000, "200"), (1001, "413")] {
        let body = json!({"model": "m", "prompt": "x".repeat(length - frame)}).to_string();
        assert_eq!(body.len(), length);
        let (one, two) = body.split_at(500);
        let chunk = |part: &str| format!("{:x}\r\n{part}\r\n", part.len());
        let sent = [
            head("transfer-encoding: chunked"),
            chunk(one),
            chunk(two),
            chunk(""),
        ]
        .concat();
        let mut socket = say(&server, &sent).await;
        assert_eq!(status(&mut socket).await, expected, "{length}");
    }
}

#[tokio::test]
async fn all_together_are_bounded() {
    let limits = Limits {
        body_bytes: 1000,
        bodies_bytes: 1000,
        ..Limits::default()
    };
    let server = Server::limited(MockSubmit::new(hello), limits).await;
    let body = json!({"model": "m", "prompt": "x".repeat(850)}).to_string();
    let (most, rest) = body.split_at(800);
    let mut first = say(
        &server,
        &(head(&format!("content-length: {}", body.len())) + most),
    )
    .await;
    let other = json!({"model": "m", "prompt": "x".repeat(250)});
    loop {
        let answer = server.call(PROTOCOLS[0], Method::POST, PATH, &other).await;
        // The first may not have been read yet.
        if answer.status == 429 {
            assert_eq!(answer.header("retry-after"), Some("1"));
            break;
        }
        assert_eq!(answer.status, 200);
    }
    first.write_all(rest.as_bytes()).await.unwrap();
    assert_eq!(status(&mut first).await, "200");
    let answer = server.call(PROTOCOLS[0], Method::POST, PATH, &other).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn that_does_not_come() {
    let limits = Limits {
        body_read_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = Server::limited(MockSubmit::new(hello), limits).await;
    let mut socket = say(&server, &(head("content-length: 9") + "{")).await;
    assert_eq!(status(&mut socket).await, "408");
}

/// Who keeps its body back keeps nobody out: whoever has waited for longest gives way.
#[tokio::test]
async fn that_do_not_come_give_way() {
    let limits = Limits {
        requests: 2,
        ..Limits::default()
    };
    let server = Server::limited(MockSubmit::new(hello), limits).await;
    let (mut writers, mut statuses) = (Vec::new(), JoinSet::new());
    for opened in 1..=6 {
        let socket = say(&server, &(head("content-length: 9") + "{")).await;
        let (mut reader, writer) = socket.into_split();
        writers.push(writer);
        statuses.spawn(async move { status(&mut reader).await });
        if opened > 2 {
            assert_eq!(statuses.join_next().await.unwrap().unwrap(), "408");
        }
    }
    // The first takes the place of one of the two, and leaves it free for the others.
    let body = json!({"model": "m", "prompt": "x"});
    for protocol in PROTOCOLS {
        let answer = server.call(protocol, Method::POST, PATH, &body).await;
        assert_eq!(answer.status, 200, "{protocol:?}");
    }
    assert_eq!(statuses.join_next().await.unwrap().unwrap(), "408");
    // The last is read to its end.
    for writer in &mut writers {
        let _ = writer.write_all(br#""a": 1} "#).await;
    }
    assert_eq!(statuses.join_next().await.unwrap().unwrap(), "400");
    assert!(statuses.is_empty());
}

#[tokio::test]
async fn of_another_type() {
    let server = Server::start(MockSubmit::new(hello)).await;
    let head = head("content-length: 2").replace("application/json", "text/plain");
    let mut socket = say(&server, &(head + "{}")).await;
    assert_eq!(status(&mut socket).await, "415");
}

/// An HTTP/3 frame of no data is legal, and no end.
#[tokio::test]
async fn with_an_empty_frame_in_the_middle() {
    let server = Server::start(MockSubmit::new(hello)).await;
    let (_endpoint, quic) = server.quic().await;
    let (_driver, mut send) = h3::client::new(h3_quinn::Connection::new(quic)).await.unwrap();
    let request = Request::post(format!("https://localhost{PATH}"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(())
        .unwrap();
    let mut stream = send.send_request(request).await.unwrap();
    for part in ["{\"model\": \"m\", ", "", "\"prompt\": \"x\"}"] {
        stream
            .send_data(Bytes::from_static(part.as_bytes()))
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stream.finish().await.unwrap();
    assert_eq!(stream.recv_response().await.unwrap().status(), 200);
    let mut text = Vec::new();
    while let Some(mut data) = stream.recv_data().await.unwrap() {
        text.extend_from_slice(&data.copy_to_bytes(data.remaining()));
    }
    let answer: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(answer["choices"][0]["text"], "hello");
}

/// Many small frames are read as well as few large ones.
#[tokio::test]
async fn in_many_small_frames() {
    let server = Server::start(MockSubmit::new(hello)).await;
    let (_endpoint, quic) = server.quic().await;
    let (_driver, mut send) = h3::client::new(h3_quinn::Connection::new(quic)).await.unwrap();
    let request = Request::post(format!("https://localhost{PATH}"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(())
        .unwrap();
    let mut stream = send.send_request(request).await.unwrap();
    let body = Bytes::from(json!({"model": "m", "prompt": "x".repeat(300_000)}).to_string());
    for at in (0..body.len()).step_by(50) {
        let piece = body.slice(at..body.len().min(at + 50));
        stream.send_data(piece).await.unwrap();
    }
    stream.finish().await.unwrap();
    assert_eq!(stream.recv_response().await.unwrap().status(), 200);
    let seen = server.mock.seen.lock().unwrap();
    assert_eq!(seen[0].prompt, api::Prompt::Text("x".repeat(300_000)));
}
