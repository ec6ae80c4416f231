//! Which tokens end an answer: those that a model's files name, and those that are spelled like one.

use std::collections::BTreeSet;

use engine::Token;

/// Spellings of tokens that end an answer, whatever the files say about them: files name one end token, chat models use several.
const ENDS: [&str; 7] = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "</s>",
];

/// The tokens that end an answer, ascending. `controls` are all that are never text.
pub(super) fn ends<'a>(
    named: impl Iterator<Item = Token>,
    controls: impl Iterator<Item = (&'a str, Token)>,
) -> Vec<Token> {
    let spelled = controls.filter(|(text, _)| ENDS.contains(text));
    let ends: BTreeSet<Token> = named.chain(spelled.map(|(_, token)| token)).collect();
    ends.into_iter().collect()
}
