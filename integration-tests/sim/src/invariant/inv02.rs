//! INV-02: free + leased + cached + quarantined = pool, on every worker, always.

use crate::evidence::Evidence;

pub(super) fn check(evidence: &Evidence) -> Vec<String> {
    let mut wrong = Vec::new();
    for sample in &evidence.samples {
        for worker in sample.gateways.iter().flat_map(|gateway| &gateway.workers) {
            let stats = &worker.peer.stats;
            let sum =
                stats.blocks_free + stats.blocks_leased + stats.blocks_cached + stats.blocks_quarantined;
            if sum != stats.blocks_total {
                wrong.push(format!("{} at {:?}: {stats:?}", worker.peer.name, sample.at));
            }
        }
    }
    wrong
}
