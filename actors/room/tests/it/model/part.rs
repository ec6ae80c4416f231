//! A machine as a part of a state: cheap to clone, and known by what it will do.

use std::collections::hash_map::DefaultHasher;
use std::fmt::{self, Debug, Write};
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// Fields that decide nothing: what is counted or shown, what never changes, and clocks of which only the order counts,
/// which is kept elsewhere. Two machines that differ in nothing else are one state.
const IGNORED: &[&str] = &[
    "counters",
    "stale_inputs",
    "told",
    "born",
    "entered",
    "since",
    "opened",
    "arrivals",
    "clock",
    "last_used",
    "spec",
    "limits",
];

/// A machine, shared by the states that have it alike. Its identity is all that its `Debug` shows but the [`IGNORED`]: a
/// field that somebody adds tells states apart until it is listed there.
#[derive(Clone)]
pub(super) struct Part<T> {
    machine: Arc<T>,
    key: u64,
}

impl<T: Clone + Debug> Part<T> {
    pub(super) fn new(machine: T) -> Self {
        let key = key(&machine);
        Self {
            machine: Arc::new(machine),
            key,
        }
    }

    /// The only way to change it.
    pub(super) fn edit<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        let out = change(Arc::make_mut(&mut self.machine));
        self.key = key(&*self.machine);
        out
    }

    pub(super) fn key(&self) -> u64 {
        self.key
    }
}

impl<T> Deref for Part<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.machine
    }
}

impl<T> Hash for Part<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.key);
    }
}

impl<T> PartialEq for Part<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T> Eq for Part<T> {}

impl<T: Debug> Debug for Part<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.machine.fmt(f)
    }
}

fn key(machine: &impl Debug) -> u64 {
    let mut canon = Canon::default();
    // A hash takes everything.
    let _ = write!(canon, "{machine:?}");
    canon.hasher.finish()
}

/// Hashes what derived `Debug`s write, piece by piece: a field's name is a piece, and so is what stands around it.
#[derive(Default)]
struct Canon {
    hasher: DefaultHasher,
    depth: u32,
    /// Inside of an ignored field, which ends at this depth.
    ignores: Option<u32>,
    /// At the beginning of a tuple without a name: in a set, its first number is a rank, which the order shows already.
    ranks: bool,
}

impl Write for Canon {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let Some(&first) = piece.as_bytes().first() else {
            self.ranks = true;
            return Ok(());
        };
        let is_rank = piece != "(" && std::mem::take(&mut self.ranks) && first.is_ascii_digit();
        if is_rank {
            return Ok(());
        }
        if first.is_ascii_alphanumeric() {
            if self.ignores.is_none() {
                if first.is_ascii_lowercase() && IGNORED.contains(&piece) {
                    self.ignores = Some(self.depth);
                }
                self.hasher.write(piece.as_bytes());
            }
            return Ok(());
        }
        // A name or a number has neither commas nor brackets.
        if self.ignores == Some(self.depth) && (piece.starts_with(", ") || piece.starts_with(" }")) {
            self.ignores = None;
        }
        if self.ignores.is_none() {
            self.hasher.write(piece.as_bytes());
        }
        for byte in piece.bytes() {
            match byte {
                b'{' | b'(' | b'[' => self.depth += 1,
                b'}' | b')' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        Ok(())
    }
}

#[test]
fn only_what_decides_nothing_is_ignored() {
    use std::collections::BTreeSet;

    #[derive(Clone, Debug)]
    #[expect(dead_code, reason = "read by Debug")]
    struct Machine {
        told: Option<(u32, u32)>,
        decides: [u32; 2],
        counters: u32,
        ranked: BTreeSet<(u32, char)>,
    }
    let machine = |told, decides, counters, ranked: [(u32, char); 2]| {
        Part::new(Machine {
            told,
            decides,
            counters,
            ranked: ranked.into(),
        })
    };
    let one = machine(Some((1, 2)), [1, 2], 3, [(1, 'a'), (5, 'b')]);
    assert_eq!(one, machine(None, [1, 2], 4, [(2, 'a'), (3, 'b')]));
    assert_ne!(one, machine(Some((1, 2)), [2, 1], 3, [(1, 'a'), (5, 'b')]));
    assert_ne!(one, machine(Some((1, 2)), [1, 2], 3, [(6, 'a'), (5, 'b')]));
}
