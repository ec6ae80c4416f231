//! What a request may ask about: conversations, and prompts of text and of tokens.

use api::{Message, Prompt, Role};
use serde_json::{Value, json};

use crate::fields::{CHAT, COMPLETIONS, post, refuses, takes, with};

#[tokio::test]
async fn conversations() {
    let messages = json!([
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "name": "eve"},
        {"role": "assistant", "content": "c", "refusal": null, "tool_calls": null, "annotations": []},
        {"role": "system", "content": ""},
    ]);
    let seen = takes(CHAT, json!({"messages": messages})).await;
    let message = |role, content: &str, name: Option<&str>| Message {
        role,
        content: content.to_owned(),
        name: name.map(str::to_owned),
    };
    let expected = vec![
        message(Role::System, "be brief", None),
        message(Role::User, "ab", Some("eve")),
        message(Role::Assistant, "c", None),
        message(Role::System, "", None),
    ];
    assert_eq!(seen.prompt, Prompt::Chat(expected));
}

#[tokio::test]
async fn malformed_conversations() {
    let check = |message: Value, param: &'static str| async move {
        let good = json!({"role": "user", "content": "x"});
        refuses(CHAT, json!({"messages": [good, message]}), param).await;
    };
    refuses(CHAT, json!({"messages": []}), "messages").await;
    refuses(CHAT, json!({"messages": null}), "messages").await;
    refuses(CHAT, json!({"messages": "hi"}), "messages").await;
    check(json!({"role": "user"}), "messages[1].content").await;
    check(json!({"role": "user", "content": 3}), "messages[1].content").await;
    check(json!({"role": "tool", "content": "x"}), "messages[1].role").await;
    check(json!({"content": "x"}), "messages[1]").await;
    check(
        json!({"role": "user", "content": "x", "mood": "bad"}),
        "messages[1].mood",
    )
    .await;
    check(
        json!({"role": "assistant", "content": "", "tool_calls": [{}]}),
        "messages[1].tool_calls",
    )
    .await;
    let image = json!([{"type": "image_url", "image_url": {"url": "u"}}]);
    check(
        json!({"role": "user", "content": image}),
        "messages[1].content[0].type",
    )
    .await;
}

#[tokio::test]
async fn prompts() {
    let check = |prompt: Value, expected: Prompt| async move {
        assert_eq!(
            takes(COMPLETIONS, json!({"prompt": prompt})).await.prompt,
            expected
        );
    };
    check(json!("text"), Prompt::Text("text".to_owned())).await;
    check(json!(["text"]), Prompt::Text("text".to_owned())).await;
    check(json!([1, 2]), Prompt::Tokens(vec![1, 2])).await;
    check(json!([[3, 4]]), Prompt::Tokens(vec![3, 4])).await;
    let (_, _, seen) = post(COMPLETIONS, with(COMPLETIONS, &json!({"prompt": [[1], [2, 3]]}))).await;
    let prompts: Vec<Prompt> = seen.into_iter().map(|request| request.prompt).collect();
    assert_eq!(prompts, [Prompt::Tokens(vec![1]), Prompt::Tokens(vec![2, 3])]);
    for wrong in [
        json!(null),
        json!([]),
        json!(7),
        json!(["a", 1]),
        json!(["a", [1]]),
        json!({"a": 1}),
    ] {
        refuses(COMPLETIONS, json!({"prompt": wrong}), "prompt").await;
    }
    refuses(COMPLETIONS, json!({"prompt": [[]]}), "prompt[0]").await;
    refuses(COMPLETIONS, json!({"prompt": [-1]}), "prompt[0]").await;
    refuses(COMPLETIONS, json!({"prompt": ["a", "b"], "n": 65}), "prompt").await;
}
