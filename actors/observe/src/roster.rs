//! The workers that a node has met: what an incarnation is called, when it was last heard, and how its link ended. Histories, the log and
//! metrics all ask here, so that a worker has its name everywhere, and keeps it when it is gone.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use room::{NodeId, Time};

use crate::event::{NodeEvent, NodeWhat, Text};

/// Incarnations that are remembered: of one that is gone there is still news.
const INCARNATIONS: usize = 1_024;

/// A node's roster. Cloning gives the same one. Bounded.
#[derive(Clone, Default)]
pub struct Roster(Arc<RwLock<BTreeMap<NodeId, Known>>>);

struct Known {
    name: Text,
    heard: Option<Time>,
    /// When and how its link ended, while it is not linked.
    over: Option<(Time, Text)>,
}

/// A worker that was linked and is not.
#[derive(Clone, Eq, PartialEq, Debug)]
pub struct Gone {
    /// Its name.
    pub name: Text,
    /// When its link ended.
    pub at: Time,
    /// How.
    pub why: Text,
}

/// Whether it is the same one.
impl PartialEq for Roster {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Roster {
    /// A history that is printed has one, and need not print it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roster").finish_non_exhaustive()
    }
}

impl Roster {
    fn read<R>(&self, f: impl FnOnce(&BTreeMap<NodeId, Known>) -> R) -> R {
        f(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<R>(&self, f: impl FnOnce(&mut BTreeMap<NodeId, Known>) -> R) -> R {
        f(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Something happened to the node. Whatever names a worker is learned from.
    pub(crate) fn learn(&self, event: &NodeEvent) {
        match &event.what {
            NodeWhat::WorkerLinked { worker, name, .. } => {
                self.meet(*worker, name);
                self.update(*worker, |known| {
                    known.over = None;
                    known.heard = Some(event.at);
                });
            }
            NodeWhat::WorkerUnlinked {
                worker, name, why, ..
            } => {
                self.meet(*worker, name);
                let over = Some((event.at, Text::clone(why)));
                self.update(*worker, |known| known.over = over);
            }
            NodeWhat::WorkerLeaving { worker, name, .. }
            | NodeWhat::Counted { worker, name, .. }
            | NodeWhat::WorkerStarted { worker, name } => self.meet(*worker, name),
            NodeWhat::RequestRefused { .. }
            | NodeWhat::WorkerRefused { .. }
            | NodeWhat::Fencing { .. }
            | NodeWhat::MailDropped { .. }
            | NodeWhat::GatewayLinked { .. }
            | NodeWhat::GatewayLeaving { .. }
            | NodeWhat::GatewayUnlinked { .. }
            | NodeWhat::Step { .. }
            | NodeWhat::FrameNotSent { .. }
            | NodeWhat::Draining { .. }
            | NodeWhat::Undrained { .. }
            | NodeWhat::EngineDown { .. }
            | NodeWhat::EngineHangs { .. }
            | NodeWhat::TransferDown { .. }
            | NodeWhat::WorkerEnded { .. }
            | NodeWhat::NodeEnds { .. } => {}
        }
    }

    /// An incarnation is this worker's from now on.
    pub(crate) fn meet(&self, node: NodeId, name: &str) {
        if self.read(|all| all.get(&node).is_some_and(|known| *known.name == *name)) {
            return;
        }
        self.write(|all| {
            let met = Known {
                name: name.into(),
                heard: None,
                over: None,
            };
            all.insert(node, met);
            while all.len() > INCARNATIONS {
                // The oldest: incarnations ascend with time.
                all.pop_first();
            }
        });
    }

    /// A worker has reported.
    pub fn heard(&self, node: NodeId, at: Time) {
        self.update(node, |known| known.heard = Some(at));
    }

    fn update(&self, node: NodeId, f: impl FnOnce(&mut Known)) {
        self.write(|all| {
            if let Some(known) = all.get_mut(&node) {
                f(known);
            }
        });
    }

    /// The name of the worker with this incarnation, if it was ever met and is not forgotten.
    #[must_use]
    pub fn name(&self, node: NodeId) -> Option<Text> {
        self.read(|all| all.get(&node).map(|known| Text::clone(&known.name)))
    }

    /// The same, or the incarnation where there is no name.
    #[must_use]
    pub fn called(&self, node: NodeId) -> Text {
        self.name(node).unwrap_or_else(|| node.to_string().into())
    }

    /// When it last reported.
    #[must_use]
    pub fn last_heard(&self, node: NodeId) -> Option<Time> {
        self.read(|all| all.get(&node).and_then(|known| known.heard))
    }

    /// How its link ended; none of one that is linked.
    #[must_use]
    pub fn link_end(&self, node: NodeId) -> Option<Text> {
        self.read(|all| all.get(&node).and_then(|known| known.over.clone()))
            .map(|(_, why)| why)
    }

    /// The workers that were linked and are not, by name.
    #[must_use]
    pub fn gone(&self) -> Vec<Gone> {
        self.read(|all| {
            // Later incarnations of a name take the place of earlier ones.
            let newest: BTreeMap<&str, &Known> = all.values().map(|known| (&*known.name, known)).collect();
            let gone = newest.into_values().filter_map(|known| {
                let (at, why) = known.over.clone()?;
                Some(Gone {
                    name: Text::clone(&known.name),
                    at,
                    why,
                })
            });
            gone.collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use room::{NodeId, Role, Time};

    use super::{INCARNATIONS, Roster};
    use crate::event::{LinkEnd, NodeEvent, NodeWhat};

    fn at(micros: u64) -> Time {
        Time { micros }
    }

    fn linked(roster: &Roster, micros: u64, node: u64, name: &str) {
        roster.learn(&NodeEvent {
            at: at(micros),
            what: NodeWhat::WorkerLinked {
                worker: NodeId(node),
                name: name.into(),
                role: Role::Decode,
                blocks: 1,
                block_tokens: 1,
                slots: 1,
            },
        });
    }

    fn lost(roster: &Roster, node: u64, name: &str, why: &str) {
        roster.learn(&NodeEvent {
            at: at(9),
            what: NodeWhat::WorkerUnlinked {
                worker: NodeId(node),
                name: name.into(),
                end: LinkEnd::Loss,
                why: why.into(),
            },
        });
    }

    #[test]
    fn a_worker_keeps_its_name_when_it_is_gone_and_when_it_is_there_again() {
        let roster = Roster::default();
        linked(&roster, 1, 1, "d0");
        lost(&roster, 1, "d0", "silent");
        linked(&roster, 2, 2, "d0");
        assert_eq!(roster.name(NodeId(1)).as_deref(), Some("d0"));
        assert_eq!(roster.name(NodeId(2)).as_deref(), Some("d0"));
        assert_eq!(roster.name(NodeId(3)), None);
        assert_eq!(&*roster.called(NodeId(3)), "0000000000000003");
    }

    #[test]
    fn how_a_link_ended_is_known_until_there_is_another() {
        let roster = Roster::default();
        linked(&roster, 1, 1, "d0");
        assert_eq!(roster.link_end(NodeId(1)), None);
        lost(&roster, 1, "d0", "silent");
        assert_eq!(roster.link_end(NodeId(1)).as_deref(), Some("silent"));
        linked(&roster, 12, 1, "d0");
        assert_eq!(roster.link_end(NodeId(1)), None);
    }

    #[test]
    fn a_worker_was_last_heard_when_it_last_reported() {
        let roster = Roster::default();
        linked(&roster, 5, 1, "d0");
        assert_eq!(roster.last_heard(NodeId(1)), Some(at(5)));
        roster.heard(NodeId(1), at(7));
        assert_eq!(roster.last_heard(NodeId(1)), Some(at(7)));
        // Nobody is met by being heard.
        roster.heard(NodeId(2), at(7));
        assert_eq!(roster.last_heard(NodeId(2)), None);
    }

    #[test]
    fn incarnations_are_bounded_and_the_oldest_go_first() {
        let roster = Roster::default();
        let most = INCARNATIONS as u64;
        for n in 0..=most {
            linked(&roster, n, n, "w");
        }
        assert_eq!(roster.read(|all| all.len()), INCARNATIONS);
        assert_eq!(roster.name(NodeId(0)), None);
        assert_eq!(roster.name(NodeId(most)).as_deref(), Some("w"));
    }
}
