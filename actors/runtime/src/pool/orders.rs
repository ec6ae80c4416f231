//! What operators want of a worker, whichever way it comes: through a gateway and its link, or at the worker's own admin listener. The pool is
//! the one owner of it, so that all gateways are told the same, and so that it outlives an incarnation of the worker. It ends with the
//! process, which begins as it is configured.
//!
//! ```text
//!   takes rooms ◄── Undrain ─── drained
//!        │  └─────── Drain ───────►│
//!        └───────── Role ──────────┴─► asked of the recipe ─ no ─► as before
//!                                              │ yes
//!                                      drains until nothing is left, or its time is over
//!                                              │
//!                                      ends its links in order; a new incarnation in the new role, drained if it was
//! ```

use std::sync::Arc;
use std::time::Duration;

use observe::WorkerEnd;
use ractor::concurrency::oneshot;
use ractor::{ActorRef, RpcReplyPort};
use room::NodeId;
use tokio::time::{sleep, timeout};
use wire::{Order, Role};

use super::{PoolMessage, PoolState, Task};
use crate::beside::blocking;
use crate::worker::{Because, WorkerMessage};

/// How long the recipe may take to say whether it allows a role: less than whoever asked waits.
const ALLOW_PATIENCE: Duration = Duration::from_secs(3);

/// How often a worker that is to change its role is asked what it has left.
const POLL: Duration = Duration::from_millis(50);

/// How long it may take to say.
const POLL_PATIENCE: Duration = Duration::from_secs(1);

/// How long whoever asks at this node waits for an answer.
const ORDER_PATIENCE: Duration = Duration::from_secs(4);

/// Who wants something, and is told what becomes of it.
pub(crate) enum Asker {
    /// Somebody at this node.
    Here(RpcReplyPort<Result<(), String>>),
    /// A gateway, over its link with the worker.
    Gateway {
        /// Which incarnation.
        gateway: NodeId,
        /// The number of its order.
        n: u64,
    },
}

/// The worker is to have another role.
pub(super) struct Change {
    role: Role,
    within: Duration,
    stage: Stage,
    /// Asks the recipe, then waits until the worker is empty.
    task: Task,
}

/// How far that is.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
enum Stage {
    /// The recipe is asked.
    Asks,
    /// The worker drains.
    Drains,
    /// It was told to end.
    Ends,
}

/// Passes an order to a pool, and waits for its answer.
pub(crate) async fn pass(pool: &ActorRef<PoolMessage>, order: Order) -> Result<(), String> {
    let (reply, answer) = oneshot();
    let asker = Asker::Here(RpcReplyPort::from(reply));
    // A pool that is gone drops the port.
    let _ = pool.cast(PoolMessage::Order(order, asker));
    match timeout(ORDER_PATIENCE, answer).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Err("its process stops".to_owned()),
        Err(_) => Err(format!("no answer within {} s", ORDER_PATIENCE.as_secs())),
    }
}

impl PoolState {
    pub(super) fn order(&mut self, pool: &ActorRef<PoolMessage>, order: Order, asker: Asker) {
        let done = match order {
            Order::Drain => {
                self.drain(true);
                Ok(())
            }
            Order::Undrain => self.undrain(),
            Order::Role { role, .. } if role == self.role && self.change.is_none() => Ok(()),
            Order::Role { role, within_ms } => match self.cannot_change() {
                Some(why) => Err(why),
                None => {
                    let within = Duration::from_millis(within_ms);
                    return self.ask_recipe(pool, (role, within), asker);
                }
            },
        };
        self.answer(asker, done);
    }

    fn undrain(&mut self) -> Result<(), String> {
        if self.stopping {
            return Err("its process stops".to_owned());
        }
        self.drain(false);
        Ok(())
    }

    fn drain(&mut self, drained: bool) {
        self.drained = drained;
        self.board.drain(drained);
        self.tell_whether();
    }

    /// Tells the worker whether it takes rooms. It may know.
    pub(super) fn tell_whether(&self) {
        self.command(match self.takes_nothing() {
            Some(because) => WorkerMessage::Drain(because, None),
            None => WorkerMessage::Undrain,
        });
    }

    fn cannot_change(&self) -> Option<String> {
        if self.stopping {
            return Some("its process stops".to_owned());
        }
        if let Some(change) = &self.change {
            return Some(format!("it is about to become {} already", change.role));
        }
        let is_built = self.worker.is_some();
        (!is_built).then(|| "it is being built: ask again when it runs".to_owned())
    }

    /// Beside the pool: it may read certificates and load a library.
    fn ask_recipe(&mut self, pool: &ActorRef<PoolMessage>, (role, within): (Role, Duration), asker: Asker) {
        let (recipe, pool) = (Arc::clone(&self.build), pool.clone());
        let asks = async move {
            let asked = blocking(move || recipe.allows(role));
            let allowed = match timeout(ALLOW_PATIENCE, asked).await {
                Ok(allowed) => allowed.and_then(|allowed| allowed),
                Err(_) => Err(format!("not known within {} s", ALLOW_PATIENCE.as_secs())),
            };
            // A pool that is gone answers nobody.
            let _ = pool.cast(PoolMessage::Allowed(allowed, asker));
        };
        self.change = Some(Change {
            role,
            within,
            stage: Stage::Asks,
            task: Task(tokio::spawn(asks)),
        });
    }

    /// The recipe has answered.
    pub(super) fn allowed(
        &mut self,
        pool: &ActorRef<PoolMessage>,
        allowed: Result<(), String>,
        asker: Asker,
    ) {
        let allowed = match (&mut self.change, &self.worker) {
            (None, _) => Err("its process stops".to_owned()),
            (Some(_), None) => Err("it ended meanwhile: ask again when it runs".to_owned()),
            (Some(change), Some(worker)) if allowed.is_ok() => {
                let empties = empty(worker.clone(), change.within, pool.clone());
                change.task = Task(tokio::spawn(empties));
                change.stage = Stage::Drains;
                Ok(())
            }
            _ => allowed,
        };
        if allowed.is_err() {
            self.change = None;
        }
        self.answer(asker, allowed);
    }

    /// What is left goes on elsewhere, as after every end of a worker.
    pub(super) fn emptied(&mut self) {
        if let Some(change) = &mut self.change {
            change.stage = Stage::Ends;
            self.command(WorkerMessage::Retire);
        }
    }

    /// The worker ended. Whether that was the end of its role alone; else it is one like any other, if in another role from now on.
    pub(super) fn changes(&mut self, pool: &ActorRef<PoolMessage>, why: &str) -> bool {
        let Some(change) = self.change.take() else {
            return false;
        };
        let (role, now) = (change.role, crate::convert::role_from_wire(change.role));
        self.role = role;
        let Some(role) = now.filter(|_| change.stage == Stage::Ends && !self.stopping) else {
            return false;
        };
        self.tell_end(why, WorkerEnd::ChangesRole { role });
        self.start(pool);
        true
    }

    /// The process stops: it takes nothing new, and what it has left is told.
    pub(super) fn stop(&mut self, reply: RpcReplyPort<usize>) {
        self.stopping = true;
        // One that was told to end does so, and no other is started.
        self.change = None;
        // A worker that is gone, or not there yet, has no rooms. One that ends now drops the port, which says the same.
        match &self.worker {
            Some(_) => self.command(WorkerMessage::Drain(Because::Stops, Some(reply))),
            None => reply.send(0).unwrap_or_default(),
        }
    }

    /// Why it takes no rooms, if it is not to.
    pub(super) fn takes_nothing(&self) -> Option<Because> {
        if self.stopping {
            return Some(Because::Stops);
        }
        let changes = self.change.as_ref();
        let drains = changes.is_some_and(|change| change.stage != Stage::Asks);
        match (drains, self.drained) {
            (true, _) => Some(Because::ChangesRole),
            (false, true) => Some(Because::Drained),
            (false, false) => None,
        }
    }

    /// A worker that is gone needs no command.
    pub(super) fn command(&self, message: WorkerMessage) {
        if let Some(worker) = &self.worker {
            worker.cast(message).unwrap_or_default();
        }
    }

    fn answer(&self, asker: Asker, answer: Result<(), String>) {
        match asker {
            // Nobody waits any more if this fails.
            Asker::Here(reply) => reply.send(answer).unwrap_or_default(),
            Asker::Gateway { gateway, n } => {
                self.command(WorkerMessage::Ordered {
                    gateway,
                    n,
                    refused: answer.err(),
                });
            }
        }
    }
}

/// Drains a worker until it has nothing left, for so long at most, and tells its pool.
async fn empty(worker: ActorRef<WorkerMessage>, within: Duration, pool: ActorRef<PoolMessage>) {
    let emptied = async {
        loop {
            let (reply, answer) = oneshot();
            let drain = WorkerMessage::Drain(Because::ChangesRole, Some(RpcReplyPort::from(reply)));
            let _ = worker.cast(drain);
            match timeout(POLL_PATIENCE, answer).await {
                // It has ended.
                Ok(Ok(0) | Err(_)) => return,
                // It has some left, or is busy: asked again.
                Ok(Ok(_)) | Err(_) => sleep(POLL).await,
            }
        }
    };
    let _ = timeout(within, emptied).await;
    // A pool that is gone has ended the worker.
    let _ = pool.cast(PoolMessage::Emptied);
}
