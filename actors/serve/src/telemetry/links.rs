//! Links as spans: how long a worker is without any gateway, at its start and whenever it loses the last one.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use observe::{Listener, NodeWhat, Text, Told};
use room::Time;

use super::queue::{Item, Link, Queue};

/// Since when each worker waits for a link, and why it lost the one it had.
pub(super) struct Links {
    queue: Queue,
    waiting: Mutex<BTreeMap<Text, (Time, Option<Text>)>>,
}

impl Links {
    pub(super) fn new(queue: Queue) -> Self {
        Self {
            queue,
            waiting: Mutex::default(),
        }
    }

    fn waits(&self, name: &Text, since: Time, lost: Option<Text>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.entry(Text::clone(name)).or_insert((since, lost));
    }

    fn linked(&self, name: &Text) -> Option<(Time, Option<Text>)> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.remove(name)
    }
}

impl Listener for Links {
    fn told(&self, told: &Told<'_>) {
        let Told::Node(event) = told else { return };
        match &event.what {
            NodeWhat::WorkerStarted { name, .. } => self.waits(name, event.at, None),
            NodeWhat::GatewayUnlinked {
                name, why, gateways, ..
            } => {
                if *gateways == 0 {
                    self.waits(name, event.at, Some(Text::clone(why)));
                }
            }
            NodeWhat::GatewayLinked { name, gateway, .. } => {
                if let Some((start, lost)) = self.linked(name) {
                    self.queue.put(Item::Link(Link {
                        name: Text::clone(name),
                        gateway: *gateway,
                        start,
                        end: event.at,
                        lost,
                    }));
                }
            }
            NodeWhat::RequestRefused { .. }
            | NodeWhat::WorkerLinked { .. }
            | NodeWhat::WorkerRefused { .. }
            | NodeWhat::WorkerLeaving { .. }
            | NodeWhat::Fencing { .. }
            | NodeWhat::WorkerUnlinked { .. }
            | NodeWhat::MailDropped { .. }
            | NodeWhat::GatewayLeaving { .. }
            | NodeWhat::Step { .. }
            | NodeWhat::Counted { .. }
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
}
