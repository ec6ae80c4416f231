//! What a gateway is like at the moment that it is asked: what rows are made with.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use mesh::LinkStats;
use observe::Roster;
use room::{NodeId, Time};
use runtime::WorkerState;

use super::Office;
use super::moment::Moment;

/// The moment, and the workers then.
pub(crate) struct Present {
    pub(crate) moment: Moment,
    /// Those that are linked.
    pub(crate) workers: Vec<WorkerState>,
    /// Their links: where each leads, and its figures.
    pub(crate) links: BTreeMap<NodeId, (SocketAddr, LinkStats)>,
    roster: Roster,
}

impl Present {
    pub(super) fn of(office: &Office) -> Self {
        let gateway = &office.gateway;
        let links = gateway.links().into_iter();
        Self {
            moment: Moment::of(gateway.now()),
            workers: gateway.workers(),
            links: links
                .map(|(node, remote, stats)| (node, (remote, stats)))
                .collect(),
            roster: office.about.roster.clone(),
        }
    }

    /// On the gateway's clock.
    pub(crate) fn now(&self) -> Time {
        self.moment.now
    }

    /// What a worker is called, linked or not any more.
    pub(crate) fn name(&self, node: NodeId) -> String {
        self.roster.called(node).to_string()
    }

    /// A worker that is linked.
    pub(crate) fn linked(&self, node: NodeId) -> Option<&WorkerState> {
        self.workers.iter().find(|worker| worker.peer.node == node)
    }

    /// Where a worker's own admin listener is asked, if it has one.
    pub(crate) fn admin(&self, worker: &WorkerState) -> Option<String> {
        let bound = worker.peer.admin?;
        let remote = self.links.get(&worker.peer.node).map(|(remote, _)| *remote);
        Some(reached(bound, remote).to_string())
    }
}

/// A listener on every address of its machine is asked at the one that its link comes from.
fn reached(bound: SocketAddr, remote: Option<SocketAddr>) -> SocketAddr {
    match remote {
        Some(remote) if bound.ip().is_unspecified() => {
            SocketAddr::new(remote.ip().to_canonical(), bound.port())
        }
        _ => bound,
    }
}

#[cfg(test)]
mod tests {
    use super::reached;

    #[track_caller]
    fn check(bound: &str, remote: Option<&str>, expected: &str) {
        let address = |text: &str| text.parse().expect("an address");
        let found = reached(address(bound), remote.map(address));
        assert_eq!(found.to_string(), expected);
    }

    #[test]
    fn a_listener_is_asked_where_it_can_be_reached() {
        check("127.0.0.1:40123", Some("10.0.0.7:5000"), "127.0.0.1:40123");
        check("0.0.0.0:40123", Some("10.0.0.7:5000"), "10.0.0.7:40123");
        check("[::]:40123", Some("[::ffff:10.0.0.7]:5000"), "10.0.0.7:40123");
        check("0.0.0.0:40123", None, "0.0.0.0:40123");
    }
}
