//! What a gateway's admin listener says, as far as the tests ask for it.

use serde::Deserialize;

/// One room.
#[derive(Clone, Debug, Deserialize)]
pub struct Room {
    /// Its id.
    pub room: String,
    /// The attempt.
    pub generation: u32,
    /// Its phase.
    pub phase: String,
    /// What it waits for, in words.
    pub waits_for: String,
    /// Tokens its client has.
    pub delivered_tokens: u32,
    /// Who may hold blocks for it.
    pub held_by: Vec<Holder>,
    /// Its outcome, if it has one.
    pub outcome: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// A worker that may hold blocks for a room.
#[derive(Clone, Debug, Deserialize)]
pub struct Holder {
    /// Name of the worker.
    pub worker: String,
    /// Blocks it holds, as it last said.
    pub blocks: Option<u32>,
}

/// One worker.
#[derive(Clone, Debug, Deserialize)]
pub struct Worker {
    /// Name.
    pub name: String,
    /// Name and epoch.
    pub node: String,
    /// Blocks in its pool.
    pub blocks_total: u32,
    /// Of those, not used.
    pub blocks_free: u32,
    /// Of those, kept for another prompt that begins alike.
    pub blocks_cached: u32,
    /// Of those, leased to rooms.
    pub blocks_leased: u32,
    /// Of those, waiting for a transfer to end.
    pub blocks_quarantined: u32,
    /// Batch slots taken.
    pub slots_used: u32,
    /// Prompt tokens accepted and not computed.
    pub prefill_backlog_tokens: u64,
    /// Blocks the gateway has promised there.
    pub promised_blocks: u32,
    /// Rooms of the gateway that it holds.
    pub rooms_held: usize,
}

impl Worker {
    /// Whether everything has come back: every block free or cached, every slot free, nothing promised.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.blocks_free + self.blocks_cached == self.blocks_total
            && self.blocks_leased + self.blocks_quarantined + self.slots_used + self.promised_blocks == 0
            && self.rooms_held == 0
            && self.prefill_backlog_tokens == 0
    }

    /// INV-02.
    ///
    /// # Panics
    /// If the parts of the pool are not the pool.
    pub fn check_sum(&self) {
        let sum = self.blocks_free + self.blocks_cached + self.blocks_leased + self.blocks_quarantined;
        assert_eq!(sum, self.blocks_total, "{self:?}");
    }
}

/// The text of `/metrics`.
#[derive(Clone, Debug)]
pub struct Metrics(pub(crate) String);

impl Metrics {
    /// The samples of one family: labels as written, and value.
    #[must_use]
    pub fn samples(&self, family: &str) -> Vec<(String, f64)> {
        let lines = self.0.lines().filter(|line| !line.starts_with('#'));
        lines
            .filter_map(|line| {
                let (series, value) = line.rsplit_once(' ')?;
                let (name, labels) = series.split_once('{').unwrap_or((series, ""));
                (name == family).then(|| (labels.trim_end_matches('}').to_owned(), value.parse().ok()))
            })
            .filter_map(|(labels, value)| Some((labels, value?)))
            .collect()
    }

    /// The sum of a family's samples whose labels contain `label`.
    #[must_use]
    pub fn sum(&self, family: &str, label: &str) -> f64 {
        let samples = self.samples(family);
        let chosen = samples.iter().filter(|(labels, _)| labels.contains(label));
        chosen.map(|(_, value)| value).sum()
    }
}
