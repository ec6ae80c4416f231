//! What a stream of server-sent events says, as far as a load generator must know. Events are searched, not parsed: that would cost more than
//! some servers spend on them.

use memchr::memmem;
use serde::Deserialize;

/// What a server says that a request took.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default, Deserialize)]
pub(super) struct Usage {
    /// Tokens of the prompt.
    pub(super) prompt_tokens: u64,
    /// Tokens of the answer.
    #[serde(default)]
    pub(super) completion_tokens: u64,
    #[serde(default)]
    prompt_tokens_details: Option<Details>,
}

#[derive(Copy, Clone, Eq, PartialEq, Debug, Default, Deserialize)]
struct Details {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

impl Usage {
    /// Tokens of the prompt that were not computed, for something kept began alike; 0 where the server does not say.
    pub(super) fn cached_tokens(&self) -> u64 {
        let details = self
            .prompt_tokens_details
            .and_then(|details| details.cached_tokens);
        details.unwrap_or_default()
    }
}

/// An event with nothing but what a server used.
#[derive(Deserialize)]
struct Envelope {
    usage: Option<Usage>,
}

/// One answer's events.
#[derive(Default)]
pub(super) struct Events {
    /// Of an event whose end has not come.
    unread: Vec<u8>,
    /// How much of it has been searched for its end.
    searched: usize,
    /// What the server says it used, if it has.
    pub(super) usage: Option<Usage>,
    /// Whether the last event has come.
    pub(super) done: bool,
    /// What went wrong, if the server said so.
    pub(super) error: Option<String>,
}

const END: &[u8] = b"\n\n";

impl Events {
    /// Where the next bytes belong.
    pub(super) fn unread(&mut self) -> &mut Vec<u8> {
        &mut self.unread
    }

    /// Looks at the events that have come whole: how many of them have text.
    pub(super) fn read(&mut self) -> usize {
        let unread = std::mem::take(&mut self.unread);
        let (mut at, mut texts) = (0, 0);
        // An end may have come in two pieces.
        let mut from = self.searched.saturating_sub(END.len() - 1);
        while let Some(length) = memmem::find(&unread[from..], END) {
            texts += usize::from(self.event(&unread[at..from + length]));
            at = from + length + END.len();
            from = at;
        }
        self.unread = unread;
        self.unread.drain(..at);
        self.searched = self.unread.len();
        texts
    }

    /// Whether an event has text.
    fn event(&mut self, event: &[u8]) -> bool {
        let Some(data) = event.strip_prefix(b"data:") else {
            if event.starts_with(b"event: error") {
                self.error = Some(String::from_utf8_lossy(event).into_owned());
            }
            return false;
        };
        let data = data.trim_ascii();
        if data == b"[DONE]" {
            self.done = true;
            return false;
        }
        match value(data, b"\"usage\"") {
            Some(value) if value.starts_with(b"{") => match serde_json::from_slice(data) {
                Ok(Envelope { usage }) => self.usage = usage.or(self.usage),
                Err(error) => self.error = Some(format!("{error}: {}", String::from_utf8_lossy(data))),
            },
            _ => {}
        }
        if value(data, b"\"error\"").is_some_and(|value| value.starts_with(b"{")) {
            self.error = Some(String::from_utf8_lossy(data).into_owned());
        }
        [b"\"text\"".as_slice(), b"\"content\""].into_iter().any(|key| {
            let text = value(data, key).and_then(|value| value.strip_prefix(b"\""));
            text.is_some_and(|text| !text.starts_with(b"\""))
        })
    }
}

/// What stands after the first such key.
fn value<'a>(json: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let at = memmem::find(json, key)?;
    let rest = json[at + key.len()..].trim_ascii_start();
    Some(rest.strip_prefix(b":")?.trim_ascii_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer with two texts, as several servers write it.
    const ANSWER: &str = "data: {\"choices\":[{\"index\":0,\"text\":\"\"}],\"usage\":null}\n\n\
        : still here\n\n\
        data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\n\n\
        data: {\"choices\":[{\"index\":0,\"text\":\" a\"}],\"usage\":null}\n\n\
        data: {\"choices\": [{\"delta\": {\"content\": \"bc\"}}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n\
        data: [DONE]\n\n";

    #[test]
    fn an_answer_is_understood_wherever_it_is_cut() {
        for step in 1..ANSWER.len() {
            let mut events = Events::default();
            let mut texts = 0;
            for piece in ANSWER.as_bytes().chunks(step) {
                events.unread().extend_from_slice(piece);
                texts += events.read();
            }
            let usage = events.usage.unwrap();
            assert_eq!((texts, events.done, events.error), (2, true, None), "{step}");
            assert_eq!(
                (
                    usage.prompt_tokens,
                    usage.completion_tokens,
                    usage.cached_tokens()
                ),
                (7, 3, 4)
            );
        }
    }

    #[test]
    fn an_error_is_no_answer() {
        for said in [
            "data: {\"error\":{\"message\":\"full\"}}\n\n",
            "event: error\ndata: full\n\n",
        ] {
            let mut events = Events::default();
            events.unread().extend_from_slice(said.as_bytes());
            assert_eq!(events.read(), 0);
            assert!(events.error.unwrap().contains("full"));
        }
    }
}
