//! One router behind every protocol: the same answers, whichever way they come.

use std::sync::Mutex;
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::harness::{PROTOCOLS, Protocol, Server};
use crate::mock::{Act, MockSubmit, done, hello, text};

/// What must not depend on the protocol: all but names and times.
fn anonymous(text: &str) -> Value {
    let mut value: Value = serde_json::from_str(text).unwrap();
    for name in ["id", "created"] {
        value.as_object_mut().unwrap().remove(name);
    }
    value
}

#[tokio::test]
async fn every_protocol_gives_the_same_answer() {
    let server = Server::start(MockSubmit::new(hello)).await;
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    let mut answers = Vec::new();
    for protocol in PROTOCOLS {
        let answer = server
            .call(protocol, Method::POST, "/v1/chat/completions", &body)
            .await;
        assert_eq!(answer.status, StatusCode::OK, "{protocol:?}");
        assert_eq!(answer.header("x-innkeeper-room"), Some("room-0"), "{protocol:?}");
        answers.push(anonymous(&answer.text().await));
    }
    assert!(answers.windows(2).all(|two| two[0] == two[1]), "{answers:#?}");
    assert_eq!(answers[0]["choices"][0]["message"]["content"], "hello");
}

#[tokio::test]
async fn every_protocol_gives_the_same_stream() {
    let server = Server::start(MockSubmit::new(hello)).await;
    let body = json!({"model": "m", "prompt": "hi", "stream": true});
    let mut streams = Vec::new();
    for protocol in PROTOCOLS {
        let answer = server
            .call(protocol, Method::POST, "/v1/completions", &body)
            .await;
        assert_eq!(
            answer.header("content-type"),
            Some("text/event-stream; charset=utf-8"),
            "{protocol:?}"
        );
        let mut events = answer.events().await;
        assert_eq!(events.pop().as_deref(), Some("[DONE]"), "{protocol:?}");
        streams.push(events.iter().map(|event| anonymous(event)).collect::<Vec<_>>());
    }
    assert!(streams.windows(2).all(|two| two[0] == two[1]), "{streams:#?}");
    assert_eq!(streams[0].len(), 3);
}

/// Half a character, or what may become a stop string, is a step without text.
#[tokio::test]
async fn a_step_without_text_ends_no_stream() {
    for protocol in PROTOCOLS {
        let (events, relayed) = mpsc::channel(1);
        let relayed = Mutex::new(Some(relayed));
        let mock = MockSubmit::new(move |_| Act::Relay(relayed.lock().unwrap().take().unwrap()));
        let server = Server::start(mock).await;
        let body = json!({"model": "m", "prompt": "hi", "stream": true});
        // One at a time: each is taken before the next can be sent.
        let sending = async {
            for event in [text(0, ""), text(0, "hel"), text(0, ""), text(0, "lo"), done(0)] {
                events.send(event).await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let reading = async {
            let answer = server
                .call(protocol, Method::POST, "/v1/completions", &body)
                .await;
            answer.events().await
        };
        let ((), events) = tokio::join!(sending, reading);
        assert_eq!(events.len(), 4, "{protocol:?}: {events:#?}");
        assert_eq!(events.last().map(String::as_str), Some("[DONE]"), "{protocol:?}");
    }
}

#[tokio::test]
async fn many_requests_share_a_connection() {
    let server = Server::start(MockSubmit::new(hello)).await;
    let body = json!({"model": "m", "prompt": "hi"});
    for protocol in PROTOCOLS {
        let mut conn = server.connect(protocol).await;
        for _ in 0..20 {
            let answer = conn.call(Method::POST, "/v1/completions", &body).await.unwrap();
            assert_eq!(answer.json().await["choices"][0]["text"], "hello", "{protocol:?}");
        }
    }
}

#[tokio::test]
async fn tcp_names_the_http3_door() {
    let server = Server::start(MockSubmit::new(hello)).await;
    for protocol in PROTOCOLS {
        let answer = server
            .call(protocol, Method::GET, "/health/live", &Value::Null)
            .await;
        let expected = format!("h3=\":{}\"; ma=86400", server.secure.port());
        let named = (protocol != Protocol::Http3).then_some(expected.as_str());
        assert_eq!(answer.header("alt-svc"), named, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_request_id_is_kept_or_made() {
    let server = Server::start(MockSubmit::new(hello)).await;
    let body = json!({"model": "m", "prompt": "hi"});
    for protocol in PROTOCOLS {
        let mut conn = server.connect(protocol).await;
        let headers = [("x-request-id", "mine-1"), ("traceparent", "00-aa-bb-01")];
        let answer = conn
            .call_with(Method::POST, "/v1/completions", &body, &headers)
            .await
            .unwrap();
        assert_eq!(answer.header("x-request-id"), Some("mine-1"));
        // What the service says, which here is what it was told.
        assert_eq!(answer.header("traceparent"), Some("00-aa-bb-01"));
        drop(answer.text().await);
        let seen = server.mock.seen.lock().unwrap().last().cloned().unwrap();
        assert_eq!(
            (seen.request_id.as_str(), seen.traceparent.as_deref()),
            ("mine-1", Some("00-aa-bb-01"))
        );
        let answer = conn
            .call_with(Method::POST, "/v1/completions", &body, &[])
            .await
            .unwrap();
        assert!(answer.header("x-request-id").unwrap().starts_with("req_"));
        assert_eq!(answer.header("traceparent"), None);
    }
}
