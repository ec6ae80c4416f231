//! The chat template in a model file.

use std::sync::Once;

use model::{ChatMessage, ChatTemplate, TemplateError};

/// Bytes of a template that are looked at; real ones are shorter.
const LONGEST: usize = 8 << 10;
/// Bytes that a rendering may have.
const OUTPUT_BYTES: usize = 64 << 20;

/// The bytes as a template. Left out is what is known to have no bound (written down where templates are compiled): what multiplies,
/// and what could put a namespace into itself.
///
/// # Panics
/// Where a template that is taken renders a conversation in two ways, or without end.
pub fn chat_template(data: &[u8]) {
    let_the_engine_panic();
    let Ok(source) = std::str::from_utf8(data) else {
        return;
    };
    if source.len() > LONGEST || source.contains('*') || could_hold_itself(source) {
        return;
    }
    let template = match ChatTemplate::new(source, "<s>", "</s>") {
        Ok(template) => template,
        Err(TemplateError::Invalid(why)) => return assert!(!why.is_empty()),
        Err(error) => panic!("compiling said: {error}"),
    };
    let message = |role: &str, content: &str| ChatMessage {
        role: role.to_owned(),
        content: content.to_owned(),
    };
    let messages = [
        message("system", "be {{ brief }}"),
        message("user", " hi \n<|im_end|>"),
        message("assistant", "a</think>b"),
        message("user", "é{% raw %}"),
    ];
    let (once, again) = (template.render(&messages, true), template.render(&messages, true));
    match (once, again) {
        (Ok(once), Ok(again)) => {
            assert!(once == again, "a prompt must be a function of its conversation");
            assert!(once.len() <= OUTPUT_BYTES);
        }
        (Err(once), Err(again)) => assert_eq!(once.to_string(), again.to_string()),
        (once, again) => panic!("{:?} and then {:?}", once.err(), again.err()),
    }
}

/// A panic of the template engine is answered as a failure of the template. libFuzzer ends at any panic, answered or not: not at these.
pub(crate) fn let_the_engine_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let of_engine = panic
                .location()
                .is_some_and(|at| at.file().contains("/minijinja-"));
            if !of_engine {
                before(panic);
            }
        }));
    });
}

/// Whether a value may be put into a namespace that is more than a number, a text or a truth value. Says yes too often.
pub(crate) fn could_hold_itself(source: &str) -> bool {
    const CHOOSES: [&str; 4] = ["or", "and", "if", "else"];
    source.contains("namespace")
        && source.split("{%").skip(1).any(|tag| {
            let tag = tag.split("%}").next().unwrap_or_default();
            let Some((target, value)) = tag.split_once('=') else {
                return false;
            };
            let value = value.trim_end_matches(|c: char| c.is_whitespace() || c == '-' || c == '+');
            let plain = value.ends_with(|c: char| c.is_ascii_digit() || c == '\'')
                && !value.contains(['[', '(', '{', ',', '|'])
                && !value.split_whitespace().any(|word| CHOOSES.contains(&word));
            target.contains('.') && !plain
        })
}

#[cfg(test)]
mod tests {
    use super::could_hold_itself;

    #[test]
    fn what_is_left_out_is_what_could_hold_itself() {
        let check = |set: &str, expected: bool| {
            let source = format!("{{% set ns = namespace(n=0) %}}{{% set {set} %}}{{{{ ns.n }}}}");
            assert_eq!(could_hold_itself(&source), expected, "{set}");
        };
        check("ns.n = ns", true);
        check("ns.n = [ns][0]", true);
        check("ns.n = ns or 0", true);
        check("ns.n = 1, ns, 2", true);
        check("ns.n = ns.n + 1", false);
        check("ns.n = 'a' -", false);
        assert!(!could_hold_itself("{% set x.y = x %}"));
    }
}
