//! The chat template in a model file.

use std::sync::Once;

use model::{ChatMessage, ChatTemplate, TemplateError};

/// Bytes of a template that are looked at; real ones are shorter.
const LONGEST: usize = 8 << 10;
/// Bytes that a rendering may have.
const OUTPUT_BYTES: usize = 64 << 20;

/// The bytes as a template. One that multiplies is left out: a list times a number is as long as the number says, and no filter that
/// walks over it counts its steps (written down where templates are compiled).
///
/// # Panics
/// Where a template that is taken renders a conversation in two ways, or without end.
pub fn chat_template(data: &[u8]) {
    let_the_engine_panic();
    let Ok(source) = std::str::from_utf8(data) else {
        return;
    };
    if source.len() > LONGEST || source.contains('*') {
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
