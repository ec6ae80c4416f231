//! Stop strings across the pieces of a stream.

/// Finds the first stop string in a text that comes in pieces, and holds back no more than could be the beginning of one.
#[derive(Clone, Debug)]
pub struct StopFinder {
    stops: Vec<String>,
    /// Text that came but could still be the beginning of a stop string.
    held: String,
    stopped: Option<usize>,
}

/// What is known after a piece.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopStep {
    /// Text that may be delivered. Never any part of the stop string, nor anything behind it.
    pub text: String,
    /// The index of the stop string that ended the text, if one did.
    pub stopped: Option<usize>,
}

impl StopFinder {
    /// For one stream. Empty stop strings are ignored.
    #[must_use]
    pub fn new(stops: &[String]) -> Self {
        Self {
            stops: stops.to_vec(),
            held: String::new(),
            stopped: None,
        }
    }

    /// Takes the next piece of text. After a stop string was found, everything is dropped.
    pub fn push(&mut self, piece: &str) -> StopStep {
        if self.stopped.is_some() {
            return StopStep {
                text: String::new(),
                stopped: self.stopped,
            };
        }
        self.held.push_str(piece);
        if let Some((at, which)) = self.first_stop() {
            self.stopped = Some(which);
            self.held.truncate(at);
            return StopStep {
                text: std::mem::take(&mut self.held),
                stopped: self.stopped,
            };
        }
        let keep = self.longest_beginning();
        let rest = self.held.split_off(self.held.len() - keep);
        StopStep {
            text: std::mem::replace(&mut self.held, rest),
            stopped: None,
        }
    }

    /// The stream has ended: what was held back, which is then no stop string.
    pub fn flush(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Where the stop string that ends first begins, and which it is; of several that end at one place the longest. This choice does
    /// not depend on how the text was cut into pieces.
    fn first_stop(&self) -> Option<(usize, usize)> {
        let found = |(which, stop): (usize, &String)| {
            let at = self.held.find(stop.as_str())?;
            Some((at + stop.len(), at, which))
        };
        self.usable()
            .filter_map(found)
            .min()
            .map(|(_, at, which)| (at, which))
    }

    /// Bytes at the end of what is held that are the beginning of a stop string: the most, so that any of them can still be found.
    fn longest_beginning(&self) -> usize {
        let beginning = |stop: &String| {
            let most = stop.len().min(self.held.len());
            (1..=most)
                .rev()
                .find(|&n| stop.is_char_boundary(n) && self.held.as_bytes().ends_with(&stop.as_bytes()[..n]))
        };
        self.usable()
            .filter_map(|(_, stop)| beginning(stop))
            .max()
            .unwrap_or(0)
    }

    fn usable(&self) -> impl Iterator<Item = (usize, &String)> {
        self.stops.iter().enumerate().filter(|(_, s)| !s.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(stops: &[&str], pieces: &[&str]) -> (Vec<String>, String, Option<usize>) {
        let stops: Vec<_> = stops.iter().map(|&s| s.to_owned()).collect();
        let mut finder = StopFinder::new(&stops);
        let texts: Vec<_> = pieces.iter().map(|p| finder.push(p).text).collect();
        (texts, finder.flush(), finder.stopped)
    }

    fn check(stops: &[&str], pieces: &[&str], texts: &[&str], rest: &str, stopped: Option<usize>) {
        let (found, held, which) = run(stops, pieces);
        assert_eq!(
            (found, held.as_str(), which),
            (texts.iter().map(|&s| s.to_owned()).collect(), rest, stopped)
        );
    }

    #[test]
    fn finds_stops_across_pieces_and_holds_back_little() {
        check(&[], &["a", "b"], &["a", "b"], "", None);
        check(&[""], &["a"], &["a"], "", None);
        check(&["STOP"], &["aST", "Ob", "c"], &["a", "STOb", "c"], "", None);
        check(&["STOP"], &["aST", "OPx", "y"], &["a", "", ""], "", Some(0));
        check(&["STOP"], &["aST"], &["a"], "ST", None);
        check(
            &["\n\n", "."],
            &["one\n", "two.", "x"],
            &["one", "\ntwo", ""],
            "",
            Some(1),
        );
        check(&["bc", "ab"], &["abc"], &[""], "", Some(1));
        check(&["ab", "abc"], &["abc"], &[""], "", Some(0));
        check(&["aab"], &["aa", "ab"], &["", "a"], "", Some(0));
        check(&["é!"], &["né", "e"], &["n", "ée"], "", None);
    }

    proptest! {
        #[test]
        fn what_is_delivered_is_the_text_before_the_first_stop(
            text in "[abé]{0,24}", stops in prop::collection::vec("[abé]{1,4}", 0..3), cut in 1_usize..4,
        ) {
            let chars: Vec<char> = text.chars().collect();
            let pieces: Vec<String> = chars.chunks(cut).map(|c| c.iter().collect()).collect();
            let mut finder = StopFinder::new(&stops);
            let mut out = String::new();
            let mut stopped = false;
            for piece in &pieces {
                let step = finder.push(piece);
                out.push_str(&step.text);
                stopped |= step.stopped.is_some();
                prop_assert!(stopped || stops.iter().all(|s| !out.contains(s.as_str())));
            }
            out.push_str(&finder.flush());
            let ends = |s: &String| text.find(s.as_str()).map(|at| (at + s.len(), at));
            let expected = stops.iter().filter_map(ends).min().map_or(text.as_str(), |(_, at)| &text[..at]);
            prop_assert_eq!(&out, expected);
        }
    }
}
