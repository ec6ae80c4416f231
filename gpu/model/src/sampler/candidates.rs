//! Choosing by chance among the tokens that the filters leave.

use engine::{Sampling, Token};

/// How many of the most likely tokens are ordered first; more only where `top_p` reaches further. Sorting a whole vocabulary would
/// take longer than the model's last layer.
const FIRST_LOOK: usize = 256;

/// A token, its logit over the temperature, and `exp` of that relative to the highest.
#[derive(Copy, Clone, Debug)]
struct Candidate {
    token: Token,
    logit: f32,
    weight: f64,
}

/// Reused memory.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    list: Vec<Candidate>,
}

impl Candidates {
    /// A token by chance; `random` is in [0, 1). `None` when no logit is finite.
    pub(super) fn choose(&mut self, logits: &[f32], sampling: &Sampling, random: f64) -> Option<Token> {
        let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        if !max.is_finite() {
            return None;
        }
        let temperature = f64::from(sampling.temperature);
        self.list.clear();
        self.list
            .extend(
                (0..)
                    .zip(logits)
                    .filter(|(_, l)| **l > f32::NEG_INFINITY)
                    .map(|(token, &logit)| Candidate {
                        token,
                        logit,
                        weight: (f64::from(logit - max) / temperature).exp(),
                    }),
            );
        self.keep_top_k(sampling.top_k as usize);
        self.keep_top_p(sampling.top_p);
        self.keep_min_p(sampling.min_p);
        self.pick(random)
    }

    fn keep_top_k(&mut self, k: usize) {
        if k > 0 && k < self.list.len() {
            self.order(k);
            self.list.truncate(k);
        }
    }

    /// Keeps the shortest run of most likely tokens whose probabilities reach `p`; at least one.
    fn keep_top_p(&mut self, p: f32) {
        if p >= 1.0 || p.is_nan() {
            return;
        }
        let enough = f64::from(p) * self.list.iter().map(|c| c.weight).sum::<f64>();
        let mut look = FIRST_LOOK;
        loop {
            let ordered = look.min(self.list.len());
            self.order(ordered);
            let mut sum = 0.0;
            let reached = self.list[..ordered].iter().position(|c| {
                sum += c.weight;
                sum >= enough
            });
            if let Some(last) = reached {
                return self.list.truncate(last + 1);
            }
            if ordered == self.list.len() {
                return;
            }
            look *= 8;
        }
    }

    /// Drops tokens less likely than `p` times the most likely one, which has weight 1.
    fn keep_min_p(&mut self, p: f32) {
        if p > 0.0 {
            self.list.retain(|c| c.weight >= f64::from(p.min(1.0)));
        }
    }

    /// Puts the `n` most likely tokens first, descending; of equal ones the lower id first.
    fn order(&mut self, n: usize) {
        let order = |a: &Candidate, b: &Candidate| b.logit.total_cmp(&a.logit).then(a.token.cmp(&b.token));
        if n > 0 && n < self.list.len() {
            self.list.select_nth_unstable_by(n - 1, order);
        }
        self.list[..n].sort_unstable_by(order);
    }

    /// The token at `random` of the way through the weights, in the order of the list.
    fn pick(&self, random: f64) -> Option<Token> {
        let mut left = random * self.list.iter().map(|c| c.weight).sum::<f64>();
        let found = self.list.iter().find(|c| {
            left -= c.weight;
            left < 0.0
        });
        // Rounding may leave a crumb behind the last one.
        found
            .or_else(|| self.list.iter().rev().find(|c| c.weight > 0.0))
            .map(|c| c.token)
    }
}
