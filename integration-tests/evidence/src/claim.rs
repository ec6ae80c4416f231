//! What is asked of a part, and what was found.

/// One thing that is asked.
#[derive(Clone, Eq, PartialEq, Debug)]
pub(crate) struct Claim {
    /// What, with its bound.
    pub(crate) asked: String,
    /// What the recording says about it.
    pub(crate) found: String,
    /// Whether that is enough.
    pub(crate) holds: bool,
}

impl Claim {
    pub(crate) fn new(asked: impl Into<String>, found: impl Into<String>, holds: bool) -> Self {
        Self {
            asked: asked.into(),
            found: found.into(),
            holds,
        }
    }

    /// In one word.
    pub(crate) fn verdict(&self) -> &'static str {
        if self.holds { "yes" } else { "**no**" }
    }
}
