//! The worker: one device, its [`Host`](room::Host), its engine thread and its KV transfer.
//!
//! One actor owns all of it. What happens (frames of gateways, events of the engine and of the transfer, a deadline) comes as messages;
//! each becomes one input of the host, and what the host decides is carried out before the next message is looked at. An engine or a
//! transfer that goes down takes this incarnation of the worker with it: the [`pool`](crate::pool) starts a new one, under a new name.

mod board;
mod content;
mod local;
mod outbox;
mod perform;
mod start;
mod state;
mod telling;
mod transfer;

use std::sync::Arc;

use engine::EngineEvent;
use kv::KvEvent;
use mesh::{Link, LinkId};
use observe::{NodeWhat, Recorder};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use room::{HostInput, NodeId};
use wire::{ToGateway, ToWorker};

pub(crate) use board::StayBoard;
pub use local::{Figures, LocalWorker, LocalWorkers};
pub use start::{BuildTransfer, StartEngine, WorkerSpec};
use state::State;

use crate::beside::blocking;
use crate::convert::{count, link_end};

/// What a worker's actor is told.
pub(crate) enum WorkerMessage {
    /// A gateway's link is up.
    LinkUp { gateway: NodeId, link: Link<ToGateway> },
    /// A gateway's link is over; its leases end with it.
    LinkDown { link: LinkId, why: mesh::DownReason },
    /// A gateway's frame. It counts as unread while it is in the mailbox: that bounds what a gateway can put there.
    Frame {
        link: LinkId,
        frame: ToWorker,
        unread: mesh::Unread,
    },
    /// The engine's.
    Engine(EngineEvent),
    /// The transfer's.
    Kv(KvEvent),
    /// The host's earliest deadline has come.
    Deadline,
    /// Take no new rooms; answered with how many are left.
    Drain(RpcReplyPort<usize>),
    /// End the links to all gateways; answered when that is done.
    Leave(RpcReplyPort<()>),
}

/// The worker's actor.
pub(crate) struct Worker;

/// What it is started with.
pub(crate) struct WorkerArguments {
    pub(crate) spec: WorkerSpec,
    pub(crate) recorder: Recorder,
    pub(crate) board: Arc<StayBoard>,
}

impl Actor for Worker {
    type Msg = WorkerMessage;
    type State = State;
    type Arguments = WorkerArguments;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        arguments: WorkerArguments,
    ) -> Result<State, ActorProcessingErr> {
        // Off the runtime: a transfer may take its time to open. How long in all, the pool bounds.
        blocking(move || start::start(&myself, arguments)).await?
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        state.board.taken();
        match message {
            WorkerMessage::LinkUp { gateway, link } => {
                // A link that replaces another ends what the older one had.
                state.feed(HostInput::GatewayLost { gateway });
                state.outbox.up(gateway, link);
                if state.host.is_draining() {
                    state.outbox.send(gateway, &leaving());
                }
                state.tell_node(NodeWhat::GatewayLinked {
                    name: Arc::clone(&state.name),
                    gateway,
                    gateways: count(state.outbox.gateways()),
                });
            }
            WorkerMessage::LinkDown { link, why } => {
                // The end of a link that was replaced is no news: its leases ended then.
                if !state.outbox.down(link) {
                    return Ok(());
                }
                let gateway = NodeId(link.epoch);
                state.feed(HostInput::GatewayLost { gateway });
                state.tell_node(NodeWhat::GatewayUnlinked {
                    name: Arc::clone(&state.name),
                    gateway,
                    gateways: count(state.outbox.gateways()),
                    end: link_end(&why),
                    why: why.to_string().into(),
                });
            }
            WorkerMessage::Frame {
                link,
                frame,
                unread: _unread,
            } => {
                if state.outbox.is_current(link) {
                    state.frame(NodeId(link.epoch), frame);
                }
            }
            WorkerMessage::Engine(event) => {
                if let Err(why) = state.engine_event(event) {
                    myself.stop(Some(why.to_string()));
                }
            }
            WorkerMessage::Kv(event) => {
                if let Err(why) = state.kv_event(event) {
                    myself.stop(Some(why));
                }
            }
            WorkerMessage::Deadline => {
                if let Err(why) = state.deadline() {
                    myself.stop(Some(why));
                }
            }
            WorkerMessage::Drain(reply) => {
                state.drain();
                // Nobody waits any more if this fails.
                let _ = reply.send(state.host.stays().count());
            }
            WorkerMessage::Leave(reply) => {
                state.drain();
                // The last thing it does: that nothing else is handled meanwhile is no loss. The mesh bounds it.
                if let Some(dialer) = state.dialer.take() {
                    dialer.stop().await;
                }
                let _ = reply.send(());
            }
        }
        Ok(())
    }
}

fn leaving() -> ToGateway {
    let reason = "it was told to stop".to_owned();
    ToGateway::Leaving { reason }
}
