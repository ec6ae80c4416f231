//! Server-sent events out of bytes.

use super::ClientError;

/// The longest event, in bytes.
const EVENT_BYTES: usize = 4 << 20;

/// Holds what has arrived of the next event.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    buffer: Vec<u8>,
    data: Option<String>,
}

impl Decoder {
    /// Takes more bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        let held = self.buffer.len() + self.data.as_ref().map_or(0, String::len);
        if held > EVENT_BYTES {
            return Err(ClientError::Malformed(format!(
                "an event is larger than {EVENT_BYTES} bytes"
            )));
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The data of the next complete event.
    pub(super) fn next_event(&mut self) -> Option<String> {
        while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
            let rest = self.buffer.split_off(end + 1);
            let line = std::mem::replace(&mut self.buffer, rest);
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\n', '\r']);
            if line.is_empty() {
                if let Some(data) = self.data.take() {
                    return Some(data);
                }
            } else if let Some(value) = line.strip_prefix("data:") {
                self.append(value.strip_prefix(' ').unwrap_or(value));
            }
        }
        None
    }

    fn append(&mut self, value: &str) {
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            None => self.data = Some(value.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same events whichever way the bytes are cut.
    fn check(stream: &str, expected: &[&str]) {
        for size in 1..=stream.len() {
            let mut decoder = Decoder::default();
            let mut events = Vec::new();
            for piece in stream.as_bytes().chunks(size) {
                decoder.feed(piece).unwrap();
                events.extend(std::iter::from_fn(|| decoder.next_event()));
            }
            assert_eq!(events, expected, "cut every {size} bytes");
        }
    }

    #[test]
    fn events_come_out_whole() {
        check("data: one\n\ndata:two\r\n\r\n", &["one", "two"]);
        check(": comment\n\ndata: größer\n\n", &["größer"]);
        check("event: x\ndata: a\ndata: b\n\ndata: unfinished", &["a\nb"]);
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut decoder = Decoder::default();
        decoder.feed(&vec![b'x'; EVENT_BYTES + 1]).unwrap();
        assert!(matches!(decoder.feed(b"x"), Err(ClientError::Malformed(_))));
    }
}
