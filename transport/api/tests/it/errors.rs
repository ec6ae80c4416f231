//! Every error: its status, its shape, its headers.

use std::time::Duration;

use api::{FailureKind, Limits, Readiness, SubmitError};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{PROTOCOLS, Protocol, Server};
use crate::mock::{Act, MockSubmit, failed, hello, text};

fn body(stream: bool) -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": stream})
}

struct Expected {
    status: u16,
    kind: &'static str,
    code: Value,
    retry_after: Option<&'static str>,
}

fn expected(status: u16, kind: &'static str, code: &str, retry_after: Option<&'static str>) -> Expected {
    let code = if code.is_empty() { Value::Null } else { json!(code) };
    Expected {
        status,
        kind,
        code,
        retry_after,
    }
}

/// The service's answer becomes this error, streaming or not.
async fn check(
    act: impl Fn() -> Act + Send + Sync + 'static,
    expected: Expected,
    param: Value,
    phase: Value,
) {
    let server = Server::start(MockSubmit::new(move |_| act())).await;
    for stream in [false, true] {
        let answer = server.post("/v1/chat/completions", &body(stream)).await;
        assert_eq!(answer.status.as_u16(), expected.status);
        assert_eq!(answer.header("retry-after"), expected.retry_after);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let error = answer.json().await["error"].take();
        assert_eq!(error["type"], expected.kind);
        assert_eq!(error["code"], expected.code);
        assert_eq!(error["param"], param);
        assert_eq!(error["phase"], phase);
        assert!(!error["message"].as_str().unwrap().is_empty());
        server.mock.until_open(0).await;
    }
}

/// What got no further than the queue says so.
async fn refusal(error: SubmitError, expected: Expected, param: Value) {
    let phase = match expected.status {
        429 | 503 => json!("queued"),
        _ => Value::Null,
    };
    check(move || Act::Refuse(error.clone()), expected, param, phase).await;
}

#[tokio::test]
async fn refusals() {
    let message = "no".to_owned();
    let retry_after = Duration::from_millis(1200);
    let invalid = SubmitError::Invalid {
        param: Some("prompt".to_owned()),
        message: message.clone(),
    };
    refusal(
        invalid,
        expected(400, "invalid_request_error", "", None),
        json!("prompt"),
    )
    .await;
    let unknown = SubmitError::UnknownModel {
        model: "x".to_owned(),
    };
    refusal(
        unknown,
        expected(404, "invalid_request_error", "model_not_found", None),
        json!("model"),
    )
    .await;
    let full = SubmitError::Overloaded {
        message: message.clone(),
        retry_after,
    };
    let code = "rate_limit_exceeded";
    refusal(
        full,
        expected(429, "rate_limit_error", code, Some("2")),
        Value::Null,
    )
    .await;
    let nobody = SubmitError::Unavailable {
        message: message.clone(),
        retry_after: Duration::ZERO,
    };
    refusal(
        nobody,
        expected(503, "server_error", "unavailable", Some("1")),
        Value::Null,
    )
    .await;
    refusal(
        SubmitError::Internal { message },
        expected(500, "server_error", "internal_error", None),
        Value::Null,
    )
    .await;
    check(
        || {
            Act::Refuse(SubmitError::Expired {
                phase: "queued".to_owned(),
            })
        },
        expected(504, "timeout_error", "deadline_exceeded", None),
        Value::Null,
        json!("queued"),
    )
    .await;
}

#[tokio::test]
async fn a_prompt_too_long_is_named_by_its_field() {
    let long = SubmitError::PromptTooLong {
        prompt_tokens: 9000,
        context_tokens: 8192,
    };
    let server = Server::start(MockSubmit::new(move |_| Act::Refuse(long.clone()))).await;
    for (path, body, param) in [
        ("/v1/completions", json!({"model": "m", "prompt": "x"}), "prompt"),
        ("/v1/chat/completions", body(false), "messages"),
    ] {
        let answer = server.post(path, &body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        let error = answer.json().await["error"].take();
        let code = json!("context_length_exceeded");
        assert_eq!((&error["param"], &error["code"]), (&json!(param), &code));
    }
}

#[tokio::test]
async fn a_failure_before_the_first_token_is_a_status() {
    let cases = [
        (
            FailureKind::Overloaded,
            expected(429, "rate_limit_error", "rate_limit_exceeded", Some("1")),
        ),
        (
            FailureKind::Unavailable,
            expected(503, "server_error", "unavailable", Some("1")),
        ),
        (
            FailureKind::Expired,
            expected(504, "timeout_error", "deadline_exceeded", None),
        ),
        (
            FailureKind::Cancelled,
            expected(503, "server_error", "cancelled", None),
        ),
        (
            FailureKind::Internal,
            expected(500, "server_error", "internal_error", None),
        ),
    ];
    for (kind, expected) in cases {
        check(
            move || Act::Hang(vec![failed(kind)]),
            expected,
            Value::Null,
            json!("decoding"),
        )
        .await;
    }
}

#[tokio::test]
async fn a_service_that_forgets_a_request_is_an_error() {
    let forgotten = expected(500, "server_error", "internal_error", None);
    check(|| Act::play(Vec::new()), forgotten, Value::Null, Value::Null).await;
}

#[tokio::test]
async fn a_panic_stays_with_its_request() {
    let mock = MockSubmit::new(|request| {
        if request.model == "bad" {
            Act::Panic
        } else {
            hello(request)
        }
    });
    let server = Server::start(mock).await;
    for protocol in PROTOCOLS {
        let mut conn = server.connect(protocol).await;
        for (model, status) in [("bad", 500), ("m", 200)] {
            let body = json!({"model": model, "prompt": "x"});
            let answer = conn.call(Method::POST, "/v1/completions", &body).await.unwrap();
            assert_eq!(answer.status, status, "{protocol:?}");
            drop(answer.text().await);
        }
    }
}

#[tokio::test]
async fn the_deadline_holds_whatever_the_service_does() {
    let limits = Limits {
        deadline_grace: Duration::from_millis(1),
        ..Limits::default()
    };
    for act in [|| Act::Ponder, || Act::Hang(Vec::new())] {
        let mock = MockSubmit::new(move |_| act());
        let server = Server::limited(mock, limits.clone()).await;
        for stream in [false, true] {
            let body = json!({"model": "m", "prompt": "x", "stream": stream, "timeout": 0.05});
            let answer = server.post("/v1/completions", &body).await;
            assert_eq!(answer.status, StatusCode::GATEWAY_TIMEOUT);
            assert_eq!(answer.json().await["error"]["code"], "deadline_exceeded");
            server.mock.until_open(0).await;
        }
    }
}

#[tokio::test]
async fn the_deadline_ends_a_stream_that_has_begun() {
    let server = Server::start(MockSubmit::new(|_| Act::Hang(vec![text(0, "a")]))).await;
    for protocol in PROTOCOLS {
        let body = json!({"model": "m", "prompt": "x", "stream": true, "timeout": 0.05});
        let answer = server
            .call(protocol, Method::POST, "/v1/completions", &body)
            .await;
        assert_eq!(answer.status, StatusCode::OK);
        let events = answer.events().await;
        assert_eq!(events.len(), 2, "{protocol:?}: {events:?}");
        assert!(
            events[1].contains("deadline_exceeded"),
            "{protocol:?}: {events:?}"
        );
        server.mock.until_open(0).await;
    }
}

#[tokio::test]
async fn what_is_not_there() {
    let server = Server::start(MockSubmit::new(hello)).await;
    let check = async |method: Method, path: &str, status: u16, code: &str| {
        for protocol in [Protocol::Http1, Protocol::Http2, Protocol::Http3] {
            let answer = server.call(protocol, method.clone(), path, &Value::Null).await;
            assert_eq!(answer.status.as_u16(), status, "{method} {path}");
            assert_eq!(answer.json().await["error"]["code"], code, "{method} {path}");
        }
    };
    check(Method::GET, "/", 404, "unknown_url").await;
    check(Method::POST, "/v1/embeddings", 404, "unknown_url").await;
    check(Method::GET, "/v1/chat/completions", 405, "method_not_allowed").await;
    check(Method::POST, "/v1/models", 405, "method_not_allowed").await;
    check(Method::GET, "/v1/models/none", 404, "model_not_found").await;
}

#[tokio::test]
async fn models_and_health() {
    let server = Server::start(MockSubmit::new(hello)).await;
    let get = async |path: &str| {
        server
            .call(Protocol::Http1, Method::GET, path, &Value::Null)
            .await
    };
    let card = |id: &str| json!({"id": id, "object": "model", "created": 1_700_000_000, "owned_by": "innkeeper", "max_model_len": 8192});
    let all = json!({"object": "list", "data": [card("m"), card("org/name")]});
    assert_eq!(get("/v1/models").await.json().await, all);
    assert_eq!(get("/v1/models/m").await.json().await, card("m"));
    assert_eq!(get("/v1/models/org/name").await.json().await, card("org/name"));
    assert_eq!(get("/health/ready").await.status, StatusCode::OK);
    *server.mock.readiness.lock().unwrap() = Readiness::NotReady("no decode worker".to_owned());
    let answer = get("/health/ready").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(
        answer.json().await["error"]["message"]
            .as_str()
            .unwrap()
            .contains("no decode worker")
    );
    assert_eq!(get("/health/live").await.status, StatusCode::OK);
}
