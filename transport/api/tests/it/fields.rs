//! Every field of a request: what is taken, what is refused, and by what name. Without a network.

use std::time::Duration;

use api::{GenerateRequest, Limits, Message, Prompt, Role, Sampling, router};
use http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::mock::{MockSubmit, hello};

pub const CHAT: &str = "/v1/chat/completions";
pub const COMPLETIONS: &str = "/v1/completions";

pub async fn post(path: &str, body: String) -> (StatusCode, Value, Vec<GenerateRequest>) {
    let mock = MockSubmit::new(hello);
    let request: Request<axum::body::Body> = Request::post(path)
        .header(header::CONTENT_TYPE, "application/json")
        .body(body.into())
        .unwrap();
    let response = router(mock.clone(), Limits::default())
        .oneshot(request)
        .await
        .unwrap();
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let seen = mock.seen.lock().unwrap().clone();
    (
        status,
        serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        seen,
    )
}

pub fn with(path: &str, more: &Value) -> String {
    let mut body = match path {
        CHAT => json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}),
        _ => json!({"model": "m", "prompt": "hi"}),
    };
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body.to_string()
}

/// The request is refused, by the name of `param`, before the service hears of it.
pub async fn refuses(path: &str, more: Value, param: &str) {
    let (status, answer, seen) = post(path, with(path, &more)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{more} gave {answer}");
    assert_eq!(answer["error"]["param"], param, "{more} gave {answer}");
    assert_eq!(answer["error"]["type"], "invalid_request_error");
    let message = answer["error"]["message"].as_str().unwrap();
    let leaf = param.rsplit('.').next().unwrap().split('[').next().unwrap();
    assert!(
        message.contains(leaf) || message.contains("stop string") || message.contains("prompt"),
        "{message}"
    );
    assert!(seen.is_empty(), "{more} came through");
}

/// The request is taken; gives what the service sees.
pub async fn takes(path: &str, more: Value) -> GenerateRequest {
    let (status, answer, seen) = post(path, with(path, &more)).await;
    assert_eq!(status, StatusCode::OK, "{more} gave {answer}");
    seen.into_iter().next().unwrap()
}

#[tokio::test]
async fn every_field_arrives() {
    let more = json!({
        "n": 3, "max_tokens": 5, "temperature": 0.5, "top_p": 0.25, "top_k": 40, "min_p": 0.125, "seed": 42,
        "presence_penalty": -1.5, "frequency_penalty": 1.5, "stop": ["a", "b"], "ignore_eos": true, "timeout": 1.5,
    });
    let sampling = Sampling {
        temperature: Some(0.5),
        top_p: Some(0.25),
        top_k: Some(40),
        min_p: Some(0.125),
        seed: Some(42),
        presence_penalty: -1.5,
        frequency_penalty: 1.5,
    };
    for path in [CHAT, COMPLETIONS] {
        let seen = takes(path, more.clone()).await;
        assert_eq!((seen.model.as_str(), seen.n, seen.max_tokens), ("m", 3, Some(5)));
        assert_eq!(seen.sampling, sampling);
        assert_eq!(seen.stop, ["a", "b"]);
        assert!(seen.ignore_eos);
        assert_eq!(seen.timeout, Duration::from_millis(1500));
    }
}

/// The message says what was given and what would be right.
async fn explains(path: &str, more: Value, words: &[&str]) {
    let (status, answer, _) = post(path, with(path, &more)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{more} gave {answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    for word in words {
        assert!(message.contains(word), "{more}: {message}");
    }
    assert!(message.len() < 200, "{message}");
}

#[tokio::test]
async fn what_is_wrong_is_explained() {
    let range = "from 0 to 4294967295";
    explains(
        COMPLETIONS,
        json!({"prompt": [-1]}),
        &["`prompt[0]`", "-1", "token id", range],
    )
    .await;
    explains(
        COMPLETIONS,
        json!({"prompt": [1, 5_000_000_000_u64]}),
        &["`prompt[1]`", "5000000000", range],
    )
    .await;
    explains(
        COMPLETIONS,
        json!({"prompt": [1.5]}),
        &["`prompt[0]`", "1.5", range],
    )
    .await;
    explains(
        COMPLETIONS,
        json!({"prompt": [[1, -2]]}),
        &["`prompt[0][1]`", "-2", range],
    )
    .await;
    explains(
        COMPLETIONS,
        json!({"prompt": [[1], 2]}),
        &["`prompt`", "one kind"],
    )
    .await;
    explains(
        CHAT,
        json!({"temperature": 1e300}),
        &["`temperature` is 1e+300", "from 0 to 2"],
    )
    .await;
    explains(
        CHAT,
        json!({"n": 1.5}),
        &["`n` is 1.5", "a whole number from 1 to 128"],
    )
    .await;
    explains(CHAT, json!({"max_tokens": -1}), &["`max_tokens` is -1", "from 1"]).await;
    explains(CHAT, json!({"logprobs": 5}), &["`logprobs`", "a boolean"]).await;
    explains(COMPLETIONS, json!({"logprobs": true}), &["`logprobs`", "number"]).await;
    explains(
        COMPLETIONS,
        json!({"best_of": -1}),
        &["`best_of` is -1", "from 1 to 128"],
    )
    .await;
}

/// As OpenAI's do: a chat goes on until it is done, a completion for 16 tokens.
#[tokio::test]
async fn how_much_is_generated_by_default() {
    assert_eq!(takes(CHAT, json!({})).await.max_tokens, None);
    assert_eq!(takes(COMPLETIONS, json!({})).await.max_tokens, Some(16));
    assert_eq!(
        takes(COMPLETIONS, json!({"max_tokens": null})).await.max_tokens,
        Some(16)
    );
    assert_eq!(
        takes(COMPLETIONS, json!({"max_tokens": 40})).await.max_tokens,
        Some(40)
    );
}

#[tokio::test]
async fn absent_fields_have_defaults() {
    for more in [
        json!({}),
        json!({"n": null, "temperature": null, "stop": null, "seed": null, "tools": null}),
    ] {
        let seen = takes(CHAT, more).await;
        assert_eq!(
            (seen.n, seen.max_tokens, seen.logprobs, seen.ignore_eos),
            (1, None, None, false)
        );
        assert_eq!(seen.sampling, Sampling::default());
        assert!(seen.stop.is_empty());
        assert_eq!(seen.timeout, Limits::default().default_timeout);
        let message = Message {
            role: Role::User,
            content: "hi".to_owned(),
            name: None,
        };
        assert_eq!(seen.prompt, Prompt::Chat(vec![message]));
    }
}

#[tokio::test]
async fn spellings_of_the_same() {
    assert_eq!(
        takes(CHAT, json!({"max_completion_tokens": 9})).await.max_tokens,
        Some(9)
    );
    assert_eq!(
        takes(CHAT, json!({"max_completion_tokens": 9, "max_tokens": 9}))
            .await
            .max_tokens,
        Some(9)
    );
    assert_eq!(takes(CHAT, json!({"stop": "x"})).await.stop, ["x"]);
    assert_eq!(takes(CHAT, json!({"max_tokens": 9.0})).await.max_tokens, Some(9));
    assert_eq!(takes(CHAT, json!({"top_k": -1})).await.sampling.top_k, Some(0));
    assert_eq!(
        takes(CHAT, json!({"seed": -1})).await.sampling.seed,
        Some(u64::MAX)
    );
    assert_eq!(
        takes(CHAT, json!({"seed": u64::MAX})).await.sampling.seed,
        Some(u64::MAX)
    );
    assert_eq!(takes(CHAT, json!({"logprobs": true})).await.logprobs, Some(0));
    assert_eq!(
        takes(CHAT, json!({"logprobs": true, "top_logprobs": 20}))
            .await
            .logprobs,
        Some(20)
    );
    assert_eq!(
        takes(CHAT, json!({"logprobs": false, "top_logprobs": 0}))
            .await
            .logprobs,
        None
    );
    assert_eq!(takes(COMPLETIONS, json!({"logprobs": 3})).await.logprobs, Some(3));
    assert_eq!(takes(COMPLETIONS, json!({"logprobs": 0})).await.logprobs, Some(0));
}

/// For both kinds of request, each of the list `good` is taken for the field, and each of `bad` refused.
async fn range(name: &str, good: Value, bad: Value) {
    for path in [CHAT, COMPLETIONS] {
        for value in good.as_array().unwrap() {
            takes(path, json!({name: value})).await;
        }
        for value in bad.as_array().unwrap() {
            refuses(path, json!({name: value}), name).await;
        }
    }
}

#[tokio::test]
async fn a_timeout_out_of_range_is_repeated_as_it_came_and_the_range_told() {
    let body = r#"{"model": "m", "prompt": "hi", "timeout": 1e300}"#;
    let (_, answer, _) = post(COMPLETIONS, body.to_owned()).await;
    let message = answer["error"]["message"].as_str().unwrap();
    let range = ": it must be seconds, above 0 and at most 3600";
    assert!(
        message.starts_with("`timeout` is 1e") && message.ends_with(range),
        "{message}"
    );
    assert!(message.len() < 80, "{message}");
}

#[tokio::test]
async fn ranges_of_lengths_and_counts() {
    range("n", json!([1, 128]), json!([0, 129, -1, 1.5, "1"])).await;
    range("max_tokens", json!([1]), json!([0, -5, 5_000_000_000_u64])).await;
    range("max_completion_tokens", json!([1]), json!([0])).await;
    range("timeout", json!([0.001, 3600]), json!([0, -1, 3601, "1"])).await;
    let stops = vec!["x"; 17];
    range("stop", json!([[], ["x"]]), json!([stops, 3, [3]])).await;
}

#[tokio::test]
async fn ranges_of_sampling() {
    range("temperature", json!([0, 2]), json!([-0.1, 2.1, "hot"])).await;
    range("top_p", json!([0.01, 1]), json!([0, 1.1, -1])).await;
    range("top_k", json!([-1, 0, 5]), json!([-2, 1.5])).await;
    range("min_p", json!([0, 1]), json!([-0.1, 1.1])).await;
    range("presence_penalty", json!([-2, 2]), json!([-2.1, 2.1])).await;
    range("frequency_penalty", json!([-2, 2]), json!([-2.1, 2.1])).await;
    range("seed", json!([0]), json!([1.5, "1", 1e30])).await;
    range("logit_bias", json!([{}]), json!([{"1": 1}])).await;
}

#[tokio::test]
async fn kinds_of_values() {
    range("model", json!(["x"]), json!([null, "", 1])).await;
    range("stream", json!([false]), json!(["yes", 1])).await;
    range("ignore_eos", json!([true]), json!(["yes"])).await;
    range("store", json!([false]), json!([true])).await;
    range("stream_options", json!([null]), json!([{"include_usage": true}])).await;
    range("surprise", json!([]), json!([1, null])).await;
}

#[tokio::test]
async fn fields_that_do_not_go_together() {
    refuses(
        CHAT,
        json!({"max_tokens": 1, "max_completion_tokens": 2}),
        "max_tokens",
    )
    .await;
    refuses(CHAT, json!({"top_logprobs": 2}), "top_logprobs").await;
    refuses(
        CHAT,
        json!({"logprobs": true, "top_logprobs": 21}),
        "top_logprobs",
    )
    .await;
    refuses(CHAT, json!({"logprobs": 1}), "logprobs").await;
    refuses(COMPLETIONS, json!({"logprobs": 21}), "logprobs").await;
    refuses(COMPLETIONS, json!({"echo": true, "logprobs": 1}), "echo").await;
    refuses(COMPLETIONS, json!({"echo": true, "prompt": [1]}), "echo").await;
    refuses(COMPLETIONS, json!({"best_of": 2}), "best_of").await;
    refuses(COMPLETIONS, json!({"suffix": "x"}), "suffix").await;
    refuses(COMPLETIONS, json!({"stop": [""]}), "stop[0]").await;
    refuses(COMPLETIONS, json!({"stop": ""}), "stop").await;
    refuses(
        CHAT,
        json!({"stream": true, "stream_options": {"surprise": 1}}),
        "stream_options.surprise",
    )
    .await;
    takes(COMPLETIONS, json!({"best_of": 2, "n": 2, "suffix": ""})).await;
}

#[tokio::test]
async fn what_would_change_the_answer_is_refused() {
    refuses(CHAT, json!({"tools": [{"type": "function"}]}), "tools").await;
    refuses(CHAT, json!({"tool_choice": "required"}), "tool_choice").await;
    refuses(CHAT, json!({"functions": [{}]}), "functions").await;
    refuses(
        CHAT,
        json!({"response_format": {"type": "json_object"}}),
        "response_format",
    )
    .await;
    refuses(CHAT, json!({"modalities": ["text", "audio"]}), "modalities").await;
    refuses(CHAT, json!({"reasoning_effort": "high"}), "reasoning_effort").await;
    refuses(
        CHAT,
        json!({"web_search_options": {"x": 1}}),
        "web_search_options",
    )
    .await;
}

#[tokio::test]
async fn what_changes_nothing_is_taken() {
    let more = json!({
        "user": "u", "metadata": {"a": "b"}, "store": false, "service_tier": "auto", "parallel_tool_calls": true,
        "response_format": { "type": "text" }, "logit_bias": {}, "tools": [], "tool_choice": "none",
        "modalities": ["text"], "safety_identifier": "s", "prompt_cache_key": "k", "prediction": null,
    });
    takes(CHAT, more).await;
}

#[tokio::test]
async fn what_is_no_json_object_is_refused() {
    for body in [
        "",
        "{",
        "[]",
        "3",
        "{\"model\": \"m\",}",
        "{\"model\": \"m\"} x",
        "\u{0}",
    ] {
        let (status, answer, seen) = post(CHAT, body.to_owned()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        assert!(
            answer["error"]["message"].as_str().unwrap().contains("JSON"),
            "{answer}"
        );
        assert!(seen.is_empty());
    }
}

/// Whatever a field holds, the request is taken or refused by name; it never breaks the server.
#[tokio::test]
async fn no_value_of_any_field_is_a_server_error() {
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    let values = json!([
        null, true, -1, 0, 1, 1e308, -1e308, i64::MIN, u64::MAX, "", "x", "\u{0}", [], [null], [[]], [{}], ["a", 1], {},
        {"a": 1}, {"type": "text"}, deep,
    ]);
    let fields = [
        "model",
        "messages",
        "prompt",
        "n",
        "stream",
        "stream_options",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "seed",
        "stop",
        "presence_penalty",
        "frequency_penalty",
        "logprobs",
        "top_logprobs",
        "ignore_eos",
        "timeout",
        "echo",
        "best_of",
        "suffix",
        "tools",
        "tool_choice",
        "functions",
        "response_format",
        "modalities",
        "audio",
        "logit_bias",
        "store",
        "user",
        "metadata",
        "unknown",
    ];
    for path in [CHAT, COMPLETIONS] {
        for field in fields {
            for value in values.as_array().unwrap() {
                let (status, answer, _) = post(path, with(path, &json!({field: value}))).await;
                let named = answer["error"]["param"]
                    .as_str()
                    .is_some_and(|param| !param.is_empty());
                let refused = status == StatusCode::BAD_REQUEST && named;
                assert!(
                    status == StatusCode::OK || refused,
                    "{field}: {value} gave {status} {answer}"
                );
            }
        }
    }
}
