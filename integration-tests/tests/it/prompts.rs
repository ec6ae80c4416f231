//! What the clusters are asked.

use integration_tests::{Answer, completion};
use serde_json::Value;

/// Prompts of a few to some forty tokens.
const PROMPTS: [&str; 8] = [
    "Once upon a time",
    "The capital of France is",
    "The old innkeeper looked up from his ledger, in which every guest of the last forty years had a line, and said to the traveller \
     who stood dripping in the door:",
    "Water boils at",
    "A recipe for bread: take flour, water, salt and yeast, and",
    "def fibonacci(n):",
    "Three things are needed for a journey through the mountains in winter. The first of them is",
    "In the year 1905",
];

/// Eight requests of so many tokens, of which every other one is sampled at 0.8 with a seed.
pub(crate) fn eight(tokens: u32) -> Vec<Value> {
    let temperature = |index: u64| if index % 2 == 1 { 0.8 } else { 0.0 };
    (0..)
        .zip(PROMPTS)
        .map(|(index, prompt)| completion(prompt, tokens, temperature(index), index))
        .collect()
}

/// A prompt of about `tokens` tokens.
pub(crate) fn long(tokens: usize, first: &str) -> String {
    // One token a word.
    format!("{first}{}", " word".repeat(tokens))
}

/// Every answer is whole, of so many tokens.
pub(crate) fn check_whole(answers: &[Answer], tokens: usize) {
    for answer in answers {
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.done && answer.error.is_none(), "{answer:?}");
        assert_eq!(answer.finish.as_deref(), Some("length"), "{answer:?}");
        assert_eq!(answer.tokens.len(), tokens, "{answer:?}");
    }
}

/// Each answer is the expected one to the bit.
pub(crate) fn check_same(expected: &[Answer], answers: &[Answer], how: &str) {
    assert_eq!(expected.len(), answers.len(), "{how}");
    for (expected, answer) in expected.iter().zip(answers) {
        assert_eq!(expected.text, answer.text, "{how}");
        assert_eq!(expected.tokens, answer.tokens, "{how}");
        assert_eq!(expected.logprobs, answer.logprobs, "{how}: {}", answer.text);
    }
}
