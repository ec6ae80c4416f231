//! INV-08: no orphan lease or quarantine at quiescence.

use crate::evidence::Evidence;

pub(super) fn check(evidence: &Evidence) -> Vec<String> {
    let mut wrong = Vec::new();
    let Some(last) = evidence.samples.last() else {
        return wrong;
    };
    for gateway in &last.gateways {
        for worker in &gateway.workers {
            let stats = &worker.peer.stats;
            let name = &worker.peer.name;
            if stats.blocks_leased > 0 || stats.blocks_quarantined > 0 {
                wrong.push(format!(
                    "{name} has {} leased and {} quarantined blocks at the end",
                    stats.blocks_leased, stats.blocks_quarantined
                ));
            }
            if !worker.peer.held.is_empty() {
                wrong.push(format!("{name} holds {:?} at the end", worker.peer.held));
            }
        }
    }
    if evidence.reads_open > 0 {
        wrong.push(format!("{} reads are open at the end", evidence.reads_open));
    }
    wrong
}
