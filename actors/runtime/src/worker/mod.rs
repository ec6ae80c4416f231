//! The worker: one device, its [`Host`](room::Host), its engine thread and its KV transfer.
//!
//! One actor owns all of it. What happens (frames of gateways, events of the engine and of the transfer) comes through an
//! [`inbox`]; each piece of news becomes one input of the host, and what the host decides is carried out before the next is
//! looked at. What has come together is told together. An engine or a transfer that goes down takes this incarnation of the worker with
//! it: the [`pool`](crate::pool) starts a new one, under a new name.

mod board;
mod content;
mod inbox;
mod local;
mod outbox;
mod perform;
mod start;
mod state;
mod telling;
mod transfer;

use std::borrow::Cow;
use std::sync::Arc;

use inbox::News;
use mesh::{Link, LinkId};
use observe::{NodeWhat, Recorder};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use room::{HostInput, NodeId};
use wire::ToGateway;

pub(crate) use board::StayBoard;
pub use local::{Figures, LocalWorker, LocalWorkers};
pub use start::{BuildTransfer, StartEngine, WorkerSpec};
use state::State;

use crate::beside::blocking;
use crate::convert::{count, link_end};
use crate::pool::PoolMessage;

/// What a worker's actor is told.
pub(crate) enum WorkerMessage {
    /// There is news in the inbox.
    Wake,
    /// The host's earliest deadline has come.
    Deadline,
    /// Answered when it is come to.
    Ping(RpcReplyPort<()>),
    /// Take no new rooms; whoever asks is told how many are left.
    Drain(Because, Option<RpcReplyPort<usize>>),
    /// Take new rooms again.
    Undrain,
    /// End the links to all gateways, and this incarnation: another one comes, in another role.
    Retire,
    /// What becomes of a gateway's order.
    Ordered {
        gateway: NodeId,
        n: u64,
        refused: Option<String>,
    },
    /// End the links to all gateways; answered when that is done.
    Leave(RpcReplyPort<()>),
}

/// Why a worker takes no new rooms.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(crate) enum Because {
    /// Its process stops.
    Stops,
    /// An operator wants it so.
    Drained,
    /// It is about to change its role.
    ChangesRole,
}

impl Because {
    /// In words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Stops => "it was told to stop",
            Self::Drained => "an operator drained it",
            Self::ChangesRole => "it is about to change its role",
        }
    }
}

/// The worker's actor.
pub(crate) struct Worker;

/// What it is started with.
pub(crate) struct WorkerArguments {
    pub(crate) spec: WorkerSpec,
    pub(crate) recorder: Recorder,
    pub(crate) board: Arc<StayBoard>,
    /// Why it takes no rooms, if it is not to.
    pub(crate) drains: Option<Because>,
    /// Its supervisor, which decides what becomes of orders.
    pub(crate) pool: ActorRef<PoolMessage>,
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
        // Whoever panics says nothing more.
        state.last_words(Some(Cow::Borrowed("it panicked")));
        match state.handle(message).await {
            Ok(()) => state.last_words(None),
            Err(why) => {
                state.last_words(Some(Cow::Owned(why.clone())));
                myself.stop(Some(why));
            }
        }
        Ok(())
    }
}

impl State {
    /// Deals with one message. `Err` when the worker cannot go on as this incarnation, and why.
    async fn handle(&mut self, message: WorkerMessage) -> Result<(), String> {
        match message {
            WorkerMessage::Wake => return self.read_news(),
            WorkerMessage::Deadline => return self.deadline(),
            WorkerMessage::Ping(reply) => {
                // Nobody waits any more if this fails.
                let _ = reply.send(());
            }
            WorkerMessage::Drain(because, reply) => {
                self.drain(because);
                if let Some(reply) = reply {
                    // Nobody waits any more if this fails.
                    let _ = reply.send(self.host.stays_len());
                }
            }
            WorkerMessage::Undrain => self.undrain(),
            WorkerMessage::Ordered { gateway, n, refused } => self.ordered(gateway, n, refused),
            WorkerMessage::Retire => {
                self.leave(Because::ChangesRole).await;
                return Err(Because::ChangesRole.words().to_owned());
            }
            WorkerMessage::Leave(reply) => {
                self.leave(Because::Stops).await;
                let _ = reply.send(());
            }
        }
        Ok(())
    }

    /// The last thing it does: that nothing else is handled meanwhile is no loss. The mesh bounds it.
    async fn leave(&mut self, because: Because) {
        self.drain(because);
        if let Some(dialer) = self.dialer.take() {
            dialer.stop().await;
        }
    }

    /// All that has come since the last time, in order. Told at its end: that is what makes one frame of many steps.
    fn read_news(&mut self) -> Result<(), String> {
        let mut news = self.inbox.take();
        let mut ended = Ok(());
        for news in news.drain(..) {
            self.board.taken();
            ended = self.hear(news);
            if ended.is_err() {
                break;
            }
        }
        self.inbox.recycle(news);
        self.settle();
        ended
    }

    /// Deals with one piece of news, and with all that follows from it but the telling. `Err` as with [`State::handle`].
    fn hear(&mut self, news: News) -> Result<(), String> {
        match news {
            News::LinkUp { gateway, link } => self.link_up(gateway, link),
            News::LinkDown { link, why } => self.link_down(link, &why),
            News::Frame {
                link,
                frame,
                unread: _unread,
            } => {
                if self.outbox.is_current(link) {
                    self.frame(NodeId(link.epoch), frame);
                }
            }
            News::Engine(event) => return self.engine_event(event),
            News::Kv(event) => return self.kv_event(event),
        }
        Ok(())
    }

    fn link_up(&mut self, gateway: NodeId, link: Link<ToGateway>) {
        // A link that replaces another ends what the older one had.
        self.feed(HostInput::GatewayLost { gateway });
        self.outbox.up(gateway, link);
        if let Some(admin) = self.admin {
            let admin = admin.to_string();
            self.outbox.mention(gateway, &ToGateway::About { admin });
        }
        if self.host.is_draining() {
            self.outbox.send(gateway, &leaving(self.because));
        }
        self.tell_node(NodeWhat::GatewayLinked {
            name: Arc::clone(&self.name),
            gateway,
            gateways: count(self.outbox.gateways()),
        });
    }

    fn link_down(&mut self, link: LinkId, why: &mesh::DownReason) {
        // The end of a link that was replaced is no news: its leases ended then.
        if !self.outbox.down(link) {
            return;
        }
        let gateway = NodeId(link.epoch);
        self.feed(HostInput::GatewayLost { gateway });
        // The next heartbeat may be far: there may be no gateway left.
        self.show();
        self.tell_node(NodeWhat::GatewayUnlinked {
            name: Arc::clone(&self.name),
            gateway,
            gateways: count(self.outbox.gateways()),
            end: link_end(why),
            why: why.to_string().into(),
        });
    }
}

fn leaving(because: Because) -> ToGateway {
    let reason = because.words().to_owned();
    ToGateway::Leaving { reason }
}
