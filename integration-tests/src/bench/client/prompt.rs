//! Prompts of so many words, each of which most vocabularies have as one token.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const WORDS: [&str; 64] = [
    "time",
    "year",
    "people",
    "way",
    "day",
    "man",
    "thing",
    "woman",
    "life",
    "child",
    "world",
    "school",
    "state",
    "family",
    "student",
    "group",
    "country",
    "problem",
    "hand",
    "part",
    "place",
    "case",
    "week",
    "company",
    "system",
    "program",
    "question",
    "work",
    "government",
    "number",
    "night",
    "point",
    "home",
    "water",
    "room",
    "mother",
    "area",
    "money",
    "story",
    "fact",
    "month",
    "lot",
    "right",
    "study",
    "book",
    "eye",
    "job",
    "word",
    "business",
    "issue",
    "side",
    "kind",
    "head",
    "house",
    "service",
    "friend",
    "father",
    "power",
    "hour",
    "game",
    "line",
    "end",
    "member",
    "law",
];

/// So many words: `shared` of them, which are the same for all of a seed, and the rest by chance, which are the same for nobody else.
pub(super) fn words(seed: u64, whose: [u64; 2], shared: usize, count: usize) -> String {
    let shared = shared.min(count);
    let mut text = String::with_capacity(count * 8);
    append(&mut text, seed, shared);
    // Odd multipliers: no two of the few that there are meet.
    let own = whose[0].wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ whose[1].wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
    append(&mut text, !seed ^ own.rotate_left(17), count - shared);
    text
}

fn append(text: &mut String, seed: u64, count: usize) {
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..count {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(WORDS[random.random_range(0..WORDS.len())]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_is_the_same_and_the_rest_is_not() {
        let (one, other) = (words(1, [0, 0], 10, 30), words(1, [0, 1], 10, 30));
        let alike = |one: &str, other: &str| {
            let pairs = one.split(' ').zip(other.split(' '));
            pairs.take_while(|(one, other)| one == other).count()
        };
        assert_eq!(one.split(' ').count(), 30);
        assert!((10..15).contains(&alike(&one, &other)));
        assert_eq!(one, words(1, [0, 0], 10, 30));
        assert!(alike(&one, &words(2, [0, 0], 10, 30)) < 5);
        assert!(alike(&words(1, [1, 0], 0, 30), &words(1, [0, 0], 0, 30)) < 5);
    }
}
