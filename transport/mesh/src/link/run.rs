//! The life of a link, from the hello's end to its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use quinn::{RecvStream, SendStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::info;
use wire::EncodedFrame;

use crate::config::Config;
use crate::faults::Switch;
use crate::link::keeper::{Beat, keep};
use crate::link::reader::read_loop;
use crate::link::writer::write_loop;
use crate::link::{Core, DownReason, Link, LinkEvent, Side};

/// Tells the owner.
pub(crate) type Tell<S> = Arc<dyn Fn(LinkEvent<S>) + Send + Sync>;

/// A link whose hello is done.
pub(crate) struct Running<S: Side> {
    pub(crate) core: Arc<Core>,
    pub(crate) peer: S::Peer,
    pub(crate) send: SendStream,
    pub(crate) recv: RecvStream,
    pub(crate) waiting: mpsc::Receiver<EncodedFrame>,
    /// On the gateway's side: how often, and what to do.
    pub(crate) beat: Option<(Duration, Beat)>,
    pub(crate) tell: Tell<S>,
}

/// Says `Down` when it is dropped: at the end of [`run`], and also when the task is aborted or panics.
struct Announced<S: Side> {
    core: Arc<Core>,
    tell: Tell<S>,
}

impl<S: Side> Drop for Announced<S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.core.end(DownReason::Closed("its owner failed".to_owned()));
        } else {
            self.core.abandon();
        }
        let why = self.core.reason_or(DownReason::Stopped);
        let link = self.core.id;
        info!(node = %self.core.node, link = link.number, %why, "link down");
        // A second panic while one unwinds would end the process.
        let _ = catch_unwind(AssertUnwindSafe(|| (self.tell)(LinkEvent::Down { link, why })));
    }
}

/// A task that ends with its owner.
struct Owned(JoinHandle<()>);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs a link to its end, and says both. When its owner is to stop, that is once what is queued is delivered.
pub(crate) async fn run<S: Side>(running: Running<S>, config: &Config) -> DownReason {
    let Running {
        core,
        peer,
        send,
        recv,
        waiting,
        beat,
        tell,
    } = running;
    let switch = Switch::new(config);
    info!(node = %core.node, link = core.id.number, remote = %core.remote, "link up");
    let announced = Announced {
        core: Arc::clone(&core),
        tell: Arc::clone(&tell),
    };
    tell(LinkEvent::Up {
        link: Link::new(Arc::clone(&core)),
        peer,
    });
    let mut keeper = Owned(tokio::spawn(keep(Arc::clone(&core), beat)));

    let link = core.id;
    let deliver = |frame, unread| tell(LinkEvent::Frame { link, frame, unread });
    // It ends with the link; before that only by a panic of the owner's, and then nothing guards the lease.
    let kept = async {
        let _ = (&mut keeper.0).await;
        DownReason::Closed("the heartbeat failed".to_owned())
    };
    tokio::select! {
        biased;
        () = core.ending.cancelled() => {}
        () = ends(&core, kept) => {}
        () = ends(&core, read_loop(&core, recv, &switch, deliver)) => {}
        () = ends(&core, write_loop(&core, send, waiting, &switch, config)) => {}
    }
    drop(announced);
    core.reason_or(DownReason::Stopped)
}

/// The end of a part is the link's. The connection is closed before the other parts drop their streams: the peer would take the end
/// of a stream for an end in order.
async fn ends(core: &Core, part: impl Future<Output = DownReason>) {
    let why = part.await;
    // The peer closes as soon as it has everything: that is what was wanted, not what went wrong.
    core.end(if core.finishing.is_cancelled() {
        DownReason::Stopped
    } else {
        why
    });
}
