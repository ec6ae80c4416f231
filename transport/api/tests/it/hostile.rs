//! Clients that speak QUIC well and HTTP/3 badly: none may make the server hold more than its limits.

use h3::error::Code;
use http::Method;
use quinn::{SendStream, WriteError};
use serde_json::Value;

use crate::harness::{Protocol, Server};
use crate::mock::{MockSubmit, hello};

/// The head of a frame that says it has a gigabyte: its type, and its length in eight bytes.
fn gigabyte(kind: u8) -> [u8; 9] {
    [kind, 0xc0, 0, 0, 0, 0x40, 0, 0, 0]
}

/// More than the server's limit and the buffers on the way: a stream's window is 256 KiB.
const FAR_TOO_MUCH: usize = 8 << 20;

/// Sends until the server will have no more; fails where it takes all.
async fn flood(stream: &mut SendStream) -> WriteError {
    let mut sent = 0;
    while sent < FAR_TOO_MUCH {
        match stream.write(&[0; 16 << 10]).await {
            Ok(bytes) => sent += bytes,
            Err(error) => return error,
        }
    }
    panic!("the server took {sent} bytes of one frame");
}

/// The server still serves others.
async fn check_well(server: &Server) {
    let answer = server
        .call(Protocol::Http3, Method::GET, "/health/live", &Value::Null)
        .await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn headers_without_end() {
    let server = Server::start(MockSubmit::new(hello)).await;
    let (_endpoint, quic) = server.quic().await;
    // Headers, and a frame of a kind that is to be passed over.
    for kind in [0x01, 0x21] {
        let (mut send, _recv) = quic.open_bi().await.unwrap();
        send.write_all(&gigabyte(kind)).await.unwrap();
        let error = flood(&mut send).await;
        assert!(matches!(error, WriteError::Stopped(_)), "{error}");
    }
    assert!(quic.close_reason().is_none(), "only the streams end");
    check_well(&server).await;
}

#[tokio::test]
async fn a_body_of_everything_but_data() {
    let server = Server::start(MockSubmit::new(hello)).await;
    let (_endpoint, quic) = server.quic().await;
    let (_driver, mut send) = h3::client::new(h3_quinn::Connection::new(quic.clone()))
        .await
        .unwrap();
    drop(
        send.send_request(http::Request::get("https://localhost/").body(()).unwrap())
            .await,
    );
    let (mut stream, _recv) = quic.open_bi().await.unwrap();
    // POST, https, the path from a literal, localhost, application/json: QPACK's static table.
    let path = b"/v1/completions";
    let mut fields = vec![0, 0, 0xc0 | 20, 0xc0 | 23, 0x51];
    fields.push(u8::try_from(path.len()).unwrap());
    fields.extend_from_slice(path);
    fields.extend_from_slice(b"\x50\x09localhost");
    fields.push(0xc0 | 46);
    let head = [1, u8::try_from(fields.len()).unwrap()];
    stream.write_all(&head).await.unwrap();
    stream.write_all(&fields).await.unwrap();
    stream.write_all(b"\x00\x01{").await.unwrap();
    stream.write_all(&gigabyte(0x21)).await.unwrap();
    let error = flood(&mut stream).await;
    assert!(matches!(error, WriteError::Stopped(_)), "{error}");
    check_well(&server).await;
}

#[tokio::test]
async fn a_control_stream_without_end() {
    let server = Server::start(MockSubmit::new(hello)).await;
    let (_endpoint, quic) = server.quic().await;
    let mut control = quic.open_uni().await.unwrap();
    // The stream's type, empty settings, and a frame to be passed over.
    control.write_all(&[0, 4, 0]).await.unwrap();
    control.write_all(&gigabyte(0x21)).await.unwrap();
    let error = flood(&mut control).await;
    assert!(matches!(error, WriteError::ConnectionLost(_)), "{error}");
    check_well(&server).await;
}

/// Each leaves something behind in h3, so that their number has a limit.
#[tokio::test]
async fn streams_without_headers() {
    let server = Server::start(MockSubmit::new(hello)).await;
    let (_endpoint, quic) = server.quic().await;
    let mut opened = 0;
    while quic.close_reason().is_none() {
        assert!(opened < 5_000, "the connection took {opened} empty streams");
        if let Ok((mut send, _recv)) = quic.open_bi().await {
            let _ = send.finish();
            opened += 1;
        }
    }
    check_well(&server).await;
}

/// A server that needs no more of a request says so with HTTP/3's own code.
#[tokio::test]
async fn the_rest_of_a_request_is_declined_politely() {
    let server = Server::start(MockSubmit::new(hello)).await;
    let (_endpoint, quic) = server.quic().await;
    let (_driver, mut send) = h3::client::new(h3_quinn::Connection::new(quic)).await.unwrap();
    let request = http::Request::post("https://localhost/nowhere").body(()).unwrap();
    let mut stream = send.send_request(request).await.unwrap();
    assert_eq!(stream.recv_response().await.unwrap().status(), 404);
    let error = loop {
        match stream.send_data(bytes::Bytes::from_static(&[b'x'; 1024])).await {
            Ok(()) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    let h3::error::StreamError::RemoteTerminate { code, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(code, Code::H3_NO_ERROR);
}
