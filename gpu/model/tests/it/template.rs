//! Chat templates: the reference renderings, and templates that mean harm.

use model::{ChatError, ChatMessage, ChatTemplate, TemplateError};

use crate::reference::{Rendering, cases, model};

fn user(content: &str) -> Vec<ChatMessage> {
    vec![ChatMessage {
        role: "user".to_owned(),
        content: content.to_owned(),
    }]
}

fn render(template: &str, content: &str) -> Result<String, TemplateError> {
    ChatTemplate::new(template, "<s>", "</s>")?.render(&user(content), true)
}

#[test]
fn conversations_render_as_the_reference_does() {
    let model = model();
    for case in cases::<Rendering>("template.json") {
        let text = model
            .template()
            .unwrap()
            .render(&case.messages, case.add_generation_prompt)
            .unwrap();
        assert_eq!(text, case.text);
    }
}

#[test]
fn what_was_said_is_text_whatever_it_spells() {
    let model = model();
    let tokenizer = model.tokenizer();
    for case in cases::<Rendering>("template.json") {
        let messages = &case.messages;
        let tokens = model.encode_chat(messages).unwrap();
        // A control token before and behind every message and before the answer, the template's own system message included.
        let system = usize::from(messages[0].role != "system");
        let controls = tokens.iter().filter(|&&t| tokenizer.is_control(t)).count();
        assert_eq!(controls, 2 * (messages.len() + system) + 1, "{messages:?}");
        // The text is the reference's.
        let spelled: Vec<u8> = tokens
            .iter()
            .flat_map(|&t| tokenizer.token_bytes(t))
            .copied()
            .collect();
        let rendered = model.template().unwrap().render(messages, true).unwrap();
        assert_eq!(String::from_utf8(spelled).unwrap(), rendered);
        if messages.iter().all(|m| !m.content.contains("<|")) {
            assert_eq!(tokens, tokenizer.encode(&rendered, true).unwrap(), "{messages:?}");
        }
    }
}

#[test]
fn what_real_templates_use_is_there() {
    let check = |template: &str, expected: &str| {
        assert_eq!(render(template, " hi ").unwrap(), expected, "{template}");
    };
    check(
        "{{ bos_token }}{{ messages[0].content.strip() }}{{ eos_token }}",
        "<s>hi</s>",
    );
    check(
        "{% for m in messages %}\n  {%- if loop.last %}{{ m['role'] | upper }}{% endif %}\n{% endfor %}",
        "USER",
    );
    check("{{ {'a': [1, 'x<y']} | tojson }}", r#"{"a": [1, "x<y"]}"#);
    check("{{ {'a': 1} | tojson(indent=2) }}", "{\n  \"a\": 1\n}");
    check(
        "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}",
        "1",
    );
    check(
        "{% if tools is defined and tools %}tools{% else %}none{% endif %}",
        "none",
    );
    check(
        "{% macro twice(x) %}{{ x }}{{ x }}{% endmacro %}{{ twice('ab') }}",
        "abab",
    );
    check("{{ messages[0]['content'].split('h')[1] ~ '!' }}", "i !");
    check("{{ '<&>' }}", "<&>");
    // Llama 3's.
    check(
        "{%- if not tools_in_user_message is defined %}{%- set tools_in_user_message = true %}{%- endif %}\
         {%- if not tools is defined %}{%- set tools = none %}{%- endif %}\
         {%- if messages[0]['role'] == 'system' %}s{%- set messages = messages[1:] %}{%- else %}n{%- endif %}\
         {%- if tools is not none %}t{%- endif %}\
         {%- for message in messages %}\
         {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}\
         {{- '[' + message['role'] + ']' + message['content'] | trim + '!' }}{%- endif %}{%- endfor %}",
        "n[user]hi!",
    );
    // Qwen 3's.
    check(
        "{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}\
         {%- for message in messages[::-1] %}{%- set index = (messages|length - 1) - loop.index0 %}\
         {%- if ns.multi_step_tool and message.role == 'user' and message.content is string and not \
         (message.content.startswith('<r>') and message.content.endswith('</r>')) %}\
         {%- set ns.multi_step_tool = false %}{%- set ns.last_query_index = index %}{%- endif %}{%- endfor %}\
         {{- ns.last_query_index }}{{- 'a</think>\\n\\nb'.split('</think>')[-1].lstrip('\\n') }}\
         {{- '<think>\\nc\\n</think>'.split('</think>')[0].rstrip('\\n').split('<think>')[-1].strip('\\n') }}\
         {%- if enable_thinking is defined and enable_thinking is false %}x{%- endif %}",
        "0bc",
    );
    check("{{ strftime_now('%d %b %Y') }}", "26 Jul 2024");
    check(
        "{{ messages[0].content.startswith(' ') and not messages[0].content.endswith('x') }}",
        "True",
    );
}

#[test]
fn a_refusal_is_told_from_a_failure() {
    let refused = render("{{ raise_exception('roles must alternate') }}", "").unwrap_err();
    assert!(
        matches!(&refused, TemplateError::Refused(why) if why == "roles must alternate"),
        "{refused}"
    );
    assert!(matches!(
        render("{{ messages[0].content.nonsense() }}", ""),
        Err(TemplateError::Failed(_))
    ));
    assert!(matches!(
        ChatTemplate::new("{% for %}", "", ""),
        Err(TemplateError::Invalid(_))
    ));
}

#[test]
fn content_is_never_a_template() {
    let text = "{{ 1 + 1 }}{% raw %}{% for x in range(10) %}";
    assert_eq!(render("{{ messages[0].content }}", text).unwrap(), text);
}

#[test]
fn templates_that_never_end_do() {
    let check = |templates: &[&str], expected: fn(&TemplateError) -> bool| {
        for template in templates {
            let error = render(template, &"y".repeat(10_000)).unwrap_err();
            assert!(expected(&error), "{template}: {error}");
        }
    };
    check(
        &[
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
            "{% for a in range(9999) %}{{ messages[0].content }}{% endfor %}",
        ],
        |e| matches!(e, TemplateError::TooLong(_)),
    );
    check(
        &[
            "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
            "{% for a in range(99999999999) %}{% endfor %}",
            "{{ 'x' * 99999999999 }}",
        ],
        |e| matches!(e, TemplateError::Failed(_)),
    );
}

#[test]
fn what_the_engine_cannot_do_fails() {
    for template in [
        "{{ messages[1:][::-1] | join }}",
        "{% for m in messages[1:][::-1] %}{{ m }}{% endfor %}",
        "{{ [1] | slice(1152921504606846976) }}",
        "{{ [1] | batch(99999999999999) | list }}",
        "{{ 'a\nb' | indent(99999999999999) }}",
        "{{ 'a\nb' | indent(width=99999999999999) }}",
        "{{ '%99999999999999d' | format(1) }}",
        "{{ '{:>99999999999999}'.format('x') }}",
        "{{ '{:.99999e}'.format(1.5) }}",
    ] {
        let error = render(template, "").unwrap_err();
        assert!(matches!(error, TemplateError::Failed(_)), "{template}: {error}");
    }
}

#[test]
fn what_is_bounded_is_served_within_its_bounds() {
    let check = |template: &str, expected: &str| {
        assert_eq!(render(template, "").unwrap(), expected, "{template}");
    };
    check("{{ [1, 2, 3] | slice(2) | list }}", "[[1, 2], [3]]");
    check("{{ [1, 2, 3] | batch(2, 0) | list }}", "[[1, 2], [3, 0]]");
    check(
        "{{ 'a\nb' | indent(2) }}{{ 'a\nb' | indent(width=1, first=true) }}",
        "a\n  b a\n b",
    );
    check(
        "{{ '%5d|%-3s|' | format(1, 'x') }}{{ '{:>3}{y}'.format('x', y=1) }}",
        "    1|x  |  x1",
    );
}

#[test]
fn a_conversation_of_very_many_messages_is_too_long() {
    let messages = vec![user("").remove(0); 140_000];
    let model = model();
    let error = model.encode_chat(&messages).unwrap_err();
    assert!(
        matches!(error, ChatError::Template(TemplateError::TooLong(_))),
        "{error}"
    );
}
