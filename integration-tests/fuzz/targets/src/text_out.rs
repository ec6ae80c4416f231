//! An answer on its way out: tokens to text, and text up to a stop string.

use std::sync::Arc;

use model::{Detokenizer, StopFinder, Tokenizer};

use crate::small_model::MODELS;

/// The bytes between the byte 30: two stop strings, and an answer. The answer is also taken as tokens.
///
/// # Panics
/// Where it matters how an answer is cut into pieces, a stop string or what follows it gets out, a text does not come back from its
/// tokens, or the pieces of a stream are not its whole.
pub fn text_out(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == 30).map(String::from_utf8_lossy);
    let mut part = || parts.next().unwrap_or_default().into_owned();
    let (first, second, text) = (part(), part(), part());
    stops(&[first, second], &text);
    let tokenizer = MODELS[0].tokenizer();
    round_trip(tokenizer, &text);
    stream(tokenizer, data);
}

fn stops(stops: &[String], text: &str) {
    let expected = naive(stops, text);
    // Whole; a character at a time; in two pieces at a place that the text chooses.
    let characters: Vec<String> = text.chars().map(String::from).collect();
    let middle = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at));
    let (head, tail) = text.split_at(middle.unwrap_or(0));
    check(stops, &[text], &expected);
    check(stops, &[head, tail], &expected);
    let pieces: Vec<&str> = characters.iter().map(String::as_str).collect();
    check(stops, &pieces, &expected);
}

/// What gets out, and whether a stop string ended it: by looking at all places.
fn naive(stops: &[String], text: &str) -> (String, bool) {
    let ends = (0..=text.len()).filter(|end| text.is_char_boundary(*end));
    for end in ends {
        let stop = stops
            .iter()
            .filter(|stop| !stop.is_empty() && text[..end].ends_with(stop.as_str()))
            .max_by_key(|stop| stop.len());
        if let Some(stop) = stop {
            return (text[..end - stop.len()].to_owned(), true);
        }
    }
    (text.to_owned(), false)
}

fn check(stops: &[String], pieces: &[&str], expected: &(String, bool)) {
    let mut finder = StopFinder::new(stops);
    let (mut out, mut stopped) = (String::new(), None);
    for piece in pieces {
        let step = finder.push(piece);
        assert!(stopped.is_none() || step.text.is_empty(), "text behind the end");
        out.push_str(&step.text);
        stopped = stopped.or(step.stopped);
        assert!(
            stopped.is_none() || step.stopped == stopped,
            "the end is taken back"
        );
    }
    out.push_str(&finder.flush());
    assert_eq!(
        (&out, stopped.is_some()),
        (&expected.0, expected.1),
        "{stops:?} in {pieces:?}"
    );
}

/// A vocabulary that has every byte spells every text.
fn round_trip(tokenizer: &Tokenizer, text: &str) {
    let plain = tokenizer.encode(text, false).unwrap();
    assert!(
        plain.iter().all(|token| !tokenizer.is_control(*token)),
        "{text:?}"
    );
    assert_eq!(tokenizer.decode(&plain), text);
    let parsed = tokenizer.encode(text, true).unwrap();
    let spelled: Vec<u8> = parsed
        .iter()
        .flat_map(|token| tokenizer.token_bytes(*token))
        .copied()
        .collect();
    assert_eq!(spelled, text.as_bytes());
}

/// Any tokens: also those that spell no whole characters, and those that are none.
fn stream(tokenizer: &Arc<Tokenizer>, data: &[u8]) {
    let tokens: Vec<u32> = data
        .iter()
        .zip(data.iter().skip(1))
        .map(|(token, next)| u32::from(*token) + if *next == 30 { 256 } else { 0 })
        .collect();
    let mut detokenizer = Detokenizer::new(Arc::clone(tokenizer));
    let mut text: String = tokens.iter().map(|token| detokenizer.push(*token)).collect();
    text.push_str(&detokenizer.flush());
    assert_eq!(text, tokenizer.decode(&tokens));
}
