//! Shutdown: nothing new, what is under way finishes, and what does not is cut.

use std::sync::Mutex;
use std::time::Duration;

use api::{DoorLimits, Drained};
use http::Method;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::harness::{Conn, PROTOCOLS, Protocol, Server};
use crate::mock::{Act, MockSubmit, done, hello, text};

fn body() -> Value {
    json!({"model": "m", "prompt": "x", "stream": true})
}

#[tokio::test]
async fn what_is_under_way_finishes() {
    for protocol in PROTOCOLS {
        let (sender, receiver) = mpsc::channel(1);
        let receiver = Mutex::new(Some(receiver));
        let mock = MockSubmit::new(move |_| Act::Relay(receiver.lock().unwrap().take().unwrap()));
        let mut server = Server::start(mock).await;
        sender.send(text(0, "first")).await.unwrap();
        let mut conn = server.connect(protocol).await;
        let mut answer = conn.call(Method::POST, "/v1/completions", &body()).await.unwrap();
        answer.read_until("first").await;
        server.stop();
        // Refused as soon as the listener is closed.
        while TcpStream::connect(server.plain).await.is_ok() {
            tokio::task::yield_now().await;
        }
        for event in [text(0, "second"), done(0)] {
            sender.send(event).await.unwrap();
        }
        let rest = answer.read_until("[DONE]").await;
        assert!(rest.contains("second"), "{protocol:?}: {rest}");
        drop((answer, conn));
        assert_eq!(server.stopped().await, Drained { cut: 0 }, "{protocol:?}");
    }
}

/// Asks until the connection takes nothing more.
async fn until_sent_away(conn: &mut Conn) {
    for _ in 0..1_000 {
        if conn
            .call(Method::GET, "/health/live", &Value::Null)
            .await
            .is_err()
        {
            return;
        }
        sleep(Duration::from_millis(5)).await;
    }
    panic!("the connection goes on");
}

#[tokio::test]
async fn whoever_leaves_sends_clients_elsewhere_and_finishes() {
    for protocol in PROTOCOLS {
        let (sender, receiver) = mpsc::channel(1);
        let receiver = Mutex::new(Some(receiver));
        let mock = MockSubmit::new(move |_| Act::Relay(receiver.lock().unwrap().take().unwrap()));
        let mut server = Server::start(mock).await;
        let mut idle = server.connect(protocol).await;
        let ready = idle
            .call(Method::GET, "/health/live", &Value::Null)
            .await
            .unwrap();
        assert_ne!(ready.header("alt-svc"), Some("clear"));
        ready.text().await;
        sender.send(text(0, "first")).await.unwrap();
        let mut conn = server.connect(protocol).await;
        let mut answer = conn.call(Method::POST, "/v1/completions", &body()).await.unwrap();
        answer.read_until("first").await;
        server.leave();
        until_sent_away(&mut idle).await;
        // Whoever comes anew is answered, and told to go.
        let mut late = server.connect(protocol).await;
        let told = late
            .call(Method::GET, "/health/live", &Value::Null)
            .await
            .unwrap();
        let over_tcp = protocol != Protocol::Http3;
        assert_eq!(
            told.header("alt-svc"),
            over_tcp.then_some("clear"),
            "{protocol:?}"
        );
        let once = matches!(protocol, Protocol::Http1 | Protocol::Http1Tls);
        assert_eq!(told.header("connection"), once.then_some("close"), "{protocol:?}");
        told.text().await;
        for event in [text(0, "second"), done(0)] {
            sender.send(event).await.unwrap();
        }
        let rest = answer.read_until("[DONE]").await;
        assert!(rest.contains("second"), "{protocol:?}: {rest}");
        drop((answer, conn, late, idle));
        assert_eq!(server.stopped().await, Drained { cut: 0 }, "{protocol:?}");
    }
}

#[tokio::test]
async fn idle_connections_do_not_hold_it_up() {
    let server = Server::start(MockSubmit::new(hello)).await;
    let mut held = Vec::new();
    for protocol in PROTOCOLS {
        let mut conn = server.connect(protocol).await;
        conn.call(Method::GET, "/health/live", &Value::Null)
            .await
            .unwrap()
            .text()
            .await;
        held.push(conn);
    }
    assert_eq!(server.stopped().await, Drained { cut: 0 });
}

#[tokio::test]
async fn what_does_not_finish_is_cut() {
    let doors = DoorLimits {
        drain: Duration::from_millis(100),
        ..DoorLimits::default()
    };
    for protocol in PROTOCOLS {
        let mock = MockSubmit::new(|_| Act::Hang(vec![text(0, "first")]));
        let server = Server::behind(mock.clone(), doors.clone()).await;
        let mut conn = server.connect(protocol).await;
        let mut answer = conn.call(Method::POST, "/v1/completions", &body()).await.unwrap();
        answer.read_until("first").await;
        assert_eq!(server.stopped().await, Drained { cut: 1 }, "{protocol:?}");
        mock.until_open(0).await;
        // The client sees it broken off, not ended.
        let mut last = answer.chunk().await;
        while matches!(last, Ok(Some(_))) {
            last = answer.chunk().await;
        }
        assert!(last.is_err(), "{protocol:?}");
    }
}
