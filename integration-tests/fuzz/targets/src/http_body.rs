//! The body of a client's request, through the router as the doors have it.

mod answers;
mod service;

use std::sync::{Arc, LazyLock, Mutex};

use api::{GenerateRequest, Limits, Prompt};
use axum::body::Body;
use http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use tower::ServiceExt;

use service::{Act, Scripted};

/// The first byte chooses the path, the content type and what the service does; the rest is the body.
///
/// # Panics
/// Where the answer is a 500 that the service did not ask for (a panic becomes one), an error is not in OpenAI's shape, something that
/// is no JSON gets through, a refused request has started something, what has started is beyond a range, or an answer does not end
/// as it must (INV-05).
pub fn http_body(data: &[u8]) {
    let Some((how, body)) = data.split_first() else {
        return;
    };
    let act = Act::of(how >> 3);
    let path = match how % 2 {
        0 => "/v1/chat/completions",
        _ => "/v1/completions",
    };
    let kind = match how >> 1 & 3 {
        3 => "text/plain",
        2 => "application/json; charset=utf-8",
        _ => "application/json",
    };
    let service = Arc::new(Scripted {
        act,
        seen: Mutex::default(),
    });
    let (status, text, events) = post(Arc::clone(&service), path, kind, body);
    let seen = std::mem::take(&mut *service.seen.lock().unwrap());
    seen.iter().for_each(check_request);
    if kind == "text/plain" {
        assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{text}");
    }
    if status.is_success() {
        let asked = serde_json::from_slice::<serde_json::Value>(body);
        assert!(asked.is_ok(), "no JSON, and yet: {text}");
        let choices: u32 = seen.iter().map(|request| request.n).sum();
        return match events {
            true => answers::check_events(&text, act),
            false => answers::check_whole(&text, act, choices),
        };
    }
    answers::check_error(status, &text);
    let of_service = act.refuses() || seen.iter().any(|request| request.timeout.as_millis() < 1_000);
    assert!(
        of_service || seen.is_empty(),
        "{status} {text}, and yet it was started"
    );
    assert!(
        act.refuses() || status != StatusCode::INTERNAL_SERVER_ERROR,
        "{text}"
    );
}

/// Status, body, and whether it is a stream of events.
fn post(service: Arc<Scripted>, path: &str, kind: &str, body: &[u8]) -> (StatusCode, String, bool) {
    static RUNTIME: LazyLock<Mutex<tokio::runtime::Runtime>> = LazyLock::new(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        Mutex::new(runtime.unwrap())
    });
    let request = Request::post(path)
        .header(header::CONTENT_TYPE, kind)
        .body(Body::from(body.to_vec()));
    let runtime = RUNTIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    runtime.block_on(async {
        let answer = api::router(service, Limits::default())
            .oneshot(request.unwrap())
            .await
            .unwrap();
        let status = answer.status();
        let kind = answer.headers().get(header::CONTENT_TYPE);
        let events = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap(), events)
    })
}

/// What stands behind the door relies on this.
fn check_request(request: &GenerateRequest) {
    let limits = Limits::default();
    assert!(!request.model.is_empty() && request.model.len() <= 1024);
    assert!((1..=limits.choices).contains(&request.n));
    assert_ne!(request.max_tokens, Some(0));
    let within = |value: f32, least: f32, most: f32| (least..=most).contains(&value);
    let sampling = &request.sampling;
    assert!(sampling.temperature.is_none_or(|t| within(t, 0.0, 2.0)));
    assert!(
        sampling
            .top_p
            .is_none_or(|p| within(p, f32::MIN_POSITIVE * f32::EPSILON, 1.0) && p > 0.0)
    );
    assert!(sampling.min_p.is_none_or(|p| within(p, 0.0, 1.0)));
    assert!(within(sampling.presence_penalty, -2.0, 2.0));
    assert!(within(sampling.frequency_penalty, -2.0, 2.0));
    assert!(request.stop.len() <= limits.stop_strings);
    assert!(request.stop.iter().all(|stop| (1..=1024).contains(&stop.len())));
    assert!(request.logprobs.is_none_or(|top| top <= 20));
    assert!(!request.timeout.is_zero() && request.timeout <= limits.max_timeout);
    match &request.prompt {
        Prompt::Chat(messages) => assert!(!messages.is_empty()),
        Prompt::Tokens(tokens) => assert!(!tokens.is_empty()),
        Prompt::Text(_) => {}
    }
}
