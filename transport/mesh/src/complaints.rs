//! Which of many like troubles are worth a warning: the first of a kind, and then one a minute, which says how many went by. So a new
//! reason is never silent, an old one that goes on is heard of again, and a flood fills no log.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Between two warnings of a kind.
const EVERY: Duration = Duration::from_secs(60);

/// Kinds told apart. Peers make some of them up: what is beyond is one kind.
const KINDS: usize = 64;

/// What was complained of lately.
#[derive(Debug, Default)]
pub(crate) struct Complaints(Mutex<BTreeMap<String, Kind>>);

#[derive(Debug)]
struct Kind {
    said: Instant,
    unsaid: u64,
}

impl Complaints {
    /// Whether to warn of this one: if so, how many of its kind went by unsaid since the last warning.
    pub(crate) fn hear(&self, kind: &str, now: Instant) -> Option<u64> {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |known: &Kind| now.saturating_duration_since(known.said) >= EVERY;
        if kinds.len() >= KINDS {
            kinds.retain(|_, known| known.unsaid > 0 || !is_over(known));
        }
        let kind = match kinds.len() < KINDS || kinds.contains_key(kind) {
            true => kind,
            false => "",
        };
        match kinds.get_mut(kind) {
            Some(known) if is_over(known) => {
                known.said = now;
                Some(std::mem::take(&mut known.unsaid))
            }
            Some(known) => {
                known.unsaid += 1;
                None
            }
            None => {
                kinds.insert(kind.to_owned(), Kind { said: now, unsaid: 0 });
                Some(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_kind_and_one_a_minute() {
        let (complaints, start) = (Complaints::default(), Instant::now());
        let steps = [
            (0, "a", Some(0)),
            (1, "a", None),
            (1, "b", Some(0)),
            (59, "a", None),
            (60, "a", Some(2)),
            (61, "b", Some(0)),
            (119, "a", None),
            (300, "a", Some(1)),
        ];
        for (second, kind, said) in steps {
            let now = start + Duration::from_secs(second);
            assert_eq!(complaints.hear(kind, now), said, "{second} {kind}");
        }
    }

    #[test]
    fn kinds_without_end_are_one() {
        let (complaints, now) = (Complaints::default(), Instant::now());
        let said = (0..1_000).filter_map(|n| complaints.hear(&n.to_string(), now));
        assert_eq!(said.count(), KINDS + 1);
        // A minute later those that nothing more came of are forgotten; the others say how many went by.
        let later = now + EVERY;
        assert_eq!(complaints.hear("new", later), Some(0));
        let unsaid = 1_000 - KINDS as u64 - 1;
        assert_eq!(complaints.hear("", later), Some(unsaid));
    }
}
