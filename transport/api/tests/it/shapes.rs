//! The shapes of answers, streamed and whole.

use api::{Event, FailureKind, FinishReason};
use serde_json::{Value, json};

use crate::harness::Server;
use crate::mock::{Act, MockSubmit, done, failed, hello, text, token};

fn chat(more: Value) -> Value {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    merge(&mut body, more);
    body
}

fn completion(more: Value) -> Value {
    let mut body = json!({"model": "m", "prompt": "Say: "});
    merge(&mut body, more);
    body
}

fn merge(body: &mut Value, more: Value) {
    if let (Value::Object(body), Value::Object(more)) = (body, more) {
        body.extend(more);
    }
}

/// The answer to `body` when the service plays `events`, without its name and time.
async fn whole(path: &str, body: Value, events: Vec<Event>) -> Value {
    let server = Server::start(MockSubmit::new(move |_| Act::play(events.clone()))).await;
    let mut answer = server.post(path, &body).await.json().await;
    anonymise(&mut answer);
    answer
}

/// The same, streamed; the last element tells the terminal event.
async fn streamed(path: &str, mut body: Value, events: Vec<Event>) -> Vec<Value> {
    merge(&mut body, json!({"stream": true}));
    let server = Server::start(MockSubmit::new(move |_| Act::play(events.clone()))).await;
    let events = server.post(path, &body).await.events().await;
    let parse = |event: &String| match event.as_str() {
        "[DONE]" => json!("[DONE]"),
        event => {
            let mut event = serde_json::from_str(event).unwrap();
            anonymise(&mut event);
            event
        }
    };
    events.iter().map(parse).collect()
}

/// Removes what differs from answer to answer, and checks that it was there.
fn anonymise(answer: &mut Value) {
    let fields = answer.as_object_mut().unwrap();
    if fields.contains_key("error") {
        return;
    }
    let id = fields.remove("id").unwrap();
    assert!(id.as_str().unwrap().starts_with("chatcmpl-") || id.as_str().unwrap().starts_with("cmpl-"));
    assert!(fields.remove("created").unwrap().as_u64().unwrap() > 1_700_000_000);
    assert!(fields.remove("system_fingerprint").unwrap().is_string());
    assert_eq!(fields.remove("model").unwrap(), "m");
}

fn usage() -> Value {
    json!({
        "prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 5},
    })
}

fn hello_events() -> Vec<Event> {
    vec![text(0, "hel"), text(0, "lo"), done(0)]
}

#[tokio::test]
async fn chat_whole() {
    let answer = whole("/v1/chat/completions", chat(json!({})), hello_events()).await;
    assert_eq!(
        answer,
        json!({
            "object": "chat.completion",
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": "hello", "refusal": null},
                "logprobs": null,
                "finish_reason": "stop",
            }],
            "usage": usage(),
        })
    );
}

#[tokio::test]
async fn chat_streamed() {
    let piece = |delta: Value, finish: Value| {
        json!({
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
        })
    };
    let events = streamed("/v1/chat/completions", chat(json!({})), hello_events()).await;
    assert_eq!(
        events,
        [
            piece(json!({"role": "assistant", "content": ""}), Value::Null),
            piece(json!({"content": "hel"}), Value::Null),
            piece(json!({"content": "lo"}), Value::Null),
            piece(json!({}), json!("stop")),
            json!("[DONE]"),
        ]
    );
}

#[tokio::test]
async fn usage_comes_last_where_asked_for() {
    let body = chat(json!({"stream_options": {"include_usage": true}}));
    let mut events = streamed("/v1/chat/completions", body, hello_events()).await;
    assert_eq!(events.pop().unwrap(), "[DONE]");
    let last = events.pop().unwrap();
    assert_eq!(
        last,
        json!({"object": "chat.completion.chunk", "choices": [], "usage": usage()})
    );
    assert!(
        events
            .iter()
            .all(|event| event["usage"].is_null() && event.get("usage").is_some())
    );
}

#[tokio::test]
async fn chat_logprobs() {
    let body = chat(json!({"logprobs": true, "top_logprobs": 2}));
    let events = vec![token(0, "é", -0.5), done(0)];
    let expected = json!({
        "content": [{
            "token": "é", "logprob": -0.5, "bytes": [0xc3, 0xa9],
            "top_logprobs": [
                {"token": "é", "logprob": -0.5, "bytes": [0xc3, 0xa9]},
                {"token": "?", "logprob": -9999.0, "bytes": [0xff]},
            ],
        }],
        "refusal": null,
    });
    let answer = whole("/v1/chat/completions", body.clone(), events.clone()).await;
    assert_eq!(answer["choices"][0]["logprobs"], expected);
    let pieces = streamed("/v1/chat/completions", body, events).await;
    assert_eq!(pieces[1]["choices"][0]["logprobs"], expected);
}

#[tokio::test]
async fn completion_logprobs() {
    let body = completion(json!({"logprobs": 2}));
    let events = vec![token(0, "né", -0.5), token(0, "e", -1.0), done(0)];
    let answer = whole("/v1/completions", body.clone(), events.clone()).await;
    assert_eq!(
        answer["choices"][0]["logprobs"],
        json!({
            "tokens": ["né", "e"],
            "token_logprobs": [-0.5, -1.0],
            "top_logprobs": [{"né": -0.5, "?": -9999.0}, {"e": -1.0, "?": -9999.0}],
            "text_offset": [0, 2],
        })
    );
    let pieces = streamed("/v1/completions", body, events).await;
    assert_eq!(pieces[1]["choices"][0]["logprobs"]["text_offset"], json!([2]));
}

#[tokio::test]
async fn completion_whole_and_streamed() {
    let choice = |text: &str, finish: Value| json!({"index": 0, "text": text, "logprobs": null, "finish_reason": finish});
    let piece = |choice: Value| json!({"object": "text_completion", "choices": [choice]});
    let answer = whole("/v1/completions", completion(json!({})), hello_events()).await;
    let expected =
        json!({"object": "text_completion", "choices": [choice("hello", json!("stop"))], "usage": usage()});
    assert_eq!(answer, expected);
    let events = streamed(
        "/v1/completions",
        completion(json!({"echo": true})),
        hello_events(),
    )
    .await;
    assert_eq!(
        events,
        [
            piece(choice("Say: ", Value::Null)),
            piece(choice("hel", Value::Null)),
            piece(choice("lo", Value::Null)),
            piece(choice("", json!("stop"))),
            json!("[DONE]"),
        ]
    );
    let answer = whole(
        "/v1/completions",
        completion(json!({"echo": true})),
        hello_events(),
    )
    .await;
    assert_eq!(answer["choices"][0]["text"], "Say: hello");
}

#[tokio::test]
async fn every_prompt_has_its_own_choices() {
    let server = Server::start(MockSubmit::new(hello)).await;
    let body = json!({"model": "m", "prompt": ["a", "b"], "n": 2, "echo": true});
    let answer = server.post("/v1/completions", &body).await;
    assert_eq!(
        answer.header("x-innkeeper-room"),
        Some("room-0,room-1,room-0,room-1")
    );
    let answer = answer.json().await;
    let choice = |at: usize| {
        (
            answer["choices"][at]["index"].clone(),
            answer["choices"][at]["text"].clone(),
        )
    };
    let expected = ["ahello", "ahello", "bhello", "bhello"];
    for (at, text) in expected.iter().enumerate() {
        assert_eq!(choice(at), (json!(at), json!(text)));
    }
    assert_eq!(answer["usage"]["prompt_tokens"], 14);
    assert_eq!(answer["usage"]["completion_tokens"], 8);
    assert_eq!(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 10);
}

#[tokio::test]
async fn length_is_a_reason() {
    let end = Event::Done {
        index: 0,
        finish: FinishReason::Length,
        completion_tokens: 1,
        cached_tokens: 0,
    };
    let answer = whole("/v1/completions", completion(json!({})), vec![text(0, "x"), end]).await;
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
}

#[tokio::test]
async fn what_belongs_to_no_open_continuation_is_dropped() {
    let events = vec![text(3, "foreign"), text(0, "a"), done(0)];
    let answer = whole("/v1/completions", completion(json!({})), events).await;
    assert_eq!(answer["choices"][0]["text"], "a");
    let events = vec![
        done(0),
        text(0, "late"),
        failed(FailureKind::Internal),
        text(1, "b"),
        done(1),
    ];
    let pieces = streamed("/v1/completions", completion(json!({"n": 2})), events).await;
    assert_eq!(pieces.len(), 4, "{pieces:#?}");
    assert_eq!(pieces[3], "[DONE]");
}

/// A stream that fails ends in one error event and never in success.
async fn check_failure(events: Vec<Event>, code: &str) {
    for (path, body) in [
        ("/v1/chat/completions", chat(json!({"n": 2}))),
        ("/v1/completions", completion(json!({"n": 2}))),
    ] {
        let pieces = streamed(path, body, events.clone()).await;
        let (last, before) = pieces.split_last().unwrap();
        assert_eq!(last["error"]["code"], code, "{pieces:#?}");
        assert!(
            before
                .iter()
                .all(|piece| piece.get("error").is_none() && piece != "[DONE]"),
            "{before:#?}"
        );
    }
}

#[tokio::test]
async fn a_failed_stream_never_ends_in_success() {
    let expired = failed(FailureKind::Expired);
    check_failure(
        vec![text(0, "a"), expired, text(1, "b"), done(1)],
        "deadline_exceeded",
    )
    .await;
    check_failure(
        vec![text(1, "b"), done(1), failed(FailureKind::Unavailable)],
        "unavailable",
    )
    .await;
    check_failure(vec![text(0, "a"), failed(FailureKind::Cancelled)], "cancelled").await;
    // The service forgot about it.
    check_failure(vec![text(0, "a"), done(0)], "internal_error").await;
}
