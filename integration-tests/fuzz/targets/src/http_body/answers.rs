//! What an answer must be like.

use http::StatusCode;
use serde_json::Value;

use super::service::Act;

/// An error in OpenAI's shape, with a status that this door gives.
pub(super) fn check_error(status: StatusCode, text: &str) {
    const GIVEN: [u16; 8] = [400, 408, 413, 415, 429, 500, 503, 504];
    assert!(GIVEN.contains(&status.as_u16()), "{status} {text}");
    let answer: Value = serde_json::from_str(text).unwrap();
    let error = &answer["error"];
    let said = |name: &str| error[name].as_str().is_some_and(|text| !text.is_empty());
    assert!(said("message") && said("type"), "{status} {text}");
    assert_eq!(answer.as_object().map(|fields| fields.len()), Some(1));
}

/// A whole answer: as many choices as were asked for, each ended.
pub(super) fn check_whole(text: &str, act: Act, choices: u32) {
    assert_eq!(act, Act::Answer, "success after failure: {text}");
    let answer: Value = serde_json::from_str(text).unwrap();
    let given = answer["choices"].as_array().unwrap();
    assert_eq!(given.len(), choices as usize, "{text}");
    for (at, choice) in given.iter().enumerate() {
        assert_eq!(choice["index"].as_u64(), Some(at as u64), "{text}");
        assert_eq!(choice["finish_reason"], "length", "{text}");
    }
}

/// A stream: events that are JSON, and one end, which is `[DONE]` only when all went well.
pub(super) fn check_events(text: &str, act: Act) {
    let mut events: Vec<&str> = text.split("\n\n").collect();
    assert_eq!(events.pop(), Some(""), "cut off: {text}");
    let data = |event: &&str| event.strip_prefix("data: ").map(str::to_owned);
    let data: Vec<String> = events.iter().filter_map(data).collect();
    assert_eq!(data.len(), events.len(), "not an event: {text}");
    let ends = data.iter().filter(|data| *data == "[DONE]").count();
    let values: Vec<Value> = data
        .iter()
        .filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let errors = values.iter().filter(|value| value["error"].is_object()).count();
    let (done, failed) = match act {
        Act::Answer => (1, 0),
        _ => (0, 1),
    };
    assert_eq!((ends, errors), (done, failed), "{text}");
    let last_is_error = values.last().is_some_and(|value| value["error"].is_object());
    let last = data.last().map(String::as_str);
    assert!(
        last == Some("[DONE]") || last_is_error,
        "something after the end: {text}"
    );
}
