//! A proxy for TCP: what comes on a connection goes out on another, as its rule says.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{TcpRule, Way};

/// Connections at a time: more are cut at once.
const MOST: usize = 1_024;
const PIECE: usize = 16 << 10;

/// How all connections go now.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
struct Course {
    rules: [TcpRule; 2],
    /// New connections are cut at once.
    refuses: bool,
    /// How often all were cut: a connection of an earlier turn is over.
    turn: u64,
}

/// A proxy for TCP. It ends when dropped, and cuts its connections.
pub struct TcpProxy {
    address: SocketAddr,
    course: watch::Sender<Course>,
    open: Arc<AtomicUsize>,
    /// Owns everything that runs for it.
    _tasks: JoinSet<()>,
}

impl TcpProxy {
    /// A proxy on a free port of this machine that passes everything on to `server`.
    ///
    /// # Panics
    /// If no port can be had.
    pub async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let (course, watched) = watch::channel(Course::default());
        let open = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, server, watched, Arc::clone(&open)));
        Self {
            address,
            course,
            open,
            _tasks: tasks,
        }
    }

    /// What to dial instead of the server.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The rule for one way from now on, for all connections.
    pub fn set(&self, way: Way, rule: TcpRule) {
        self.course.send_modify(|course| course.rules[way.index()] = rule);
    }

    /// The rule for both ways from now on.
    pub fn set_both(&self, rule: TcpRule) {
        Way::BOTH.into_iter().for_each(|way| self.set(way, rule));
    }

    /// Cuts every connection there is. New ones are taken.
    pub fn sever(&self) {
        self.course.send_modify(|course| course.turn += 1);
    }

    /// Whether new connections are cut at once.
    pub fn refuse(&self, refuses: bool) {
        self.course.send_modify(|course| course.refuses = refuses);
    }

    /// Connections that are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }
}

/// A proxy without switches, for as long as it is polled. What it dials is dialled from where it is polled.
pub(crate) async fn pass_on(listener: TcpListener, server: SocketAddr) {
    let (_course, watched) = watch::channel(Course::default());
    accept(listener, server, watched, Arc::default()).await;
}

async fn accept(
    listener: TcpListener,
    server: SocketAddr,
    course: watch::Receiver<Course>,
    open: Arc<AtomicUsize>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => open.store(connections.len(), Ordering::Relaxed),
            accepted = listener.accept() => {
                let Ok((peer, _)) = accepted else { continue };
                if !course.borrow().refuses && connections.len() < MOST {
                    connections.spawn(carry(peer, server, course.clone()));
                    open.store(connections.len(), Ordering::Relaxed);
                }
            }
        }
    }
}

/// One connection, until both of its ways have ended, one has failed, or it is cut.
async fn carry(peer: TcpStream, server: SocketAddr, mut course: watch::Receiver<Course>) {
    let turn = course.borrow().turn;
    let ways = (course.clone(), course.clone());
    let carried = async {
        let server = TcpStream::connect(server).await.ok()?;
        // The proxy is not what a test measures.
        peer.set_nodelay(true).ok()?;
        server.set_nodelay(true).ok()?;
        let (from_peer, to_peer) = peer.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::try_join!(
            pump(from_peer, to_server, Way::Out, ways.0),
            pump(from_server, to_peer, Way::Back, ways.1)
        )
        .ok()
    };
    tokio::select! {
        biased;
        // An error: the proxy itself is over.
        _ = course.wait_for(|course| course.turn != turn) => {}
        _ = carried => {}
    }
}

/// One way. An error is a connection that has broken; the end of what comes is passed on.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    way: Way,
    mut course: watch::Receiver<Course>,
) -> Result<(), ()> {
    let mut buffer = vec![0; PIECE];
    loop {
        let index = way.index();
        released(&mut course, index).await?;
        let length = from.read(&mut buffer).await.map_err(|_| ())?;
        // It may have been stopped while nothing came.
        let rule = released(&mut course, index).await?;
        sleep(rule.takes(length)).await;
        released(&mut course, index).await?;
        if length == 0 {
            return to.shutdown().await.map_err(|_| ());
        }
        to.write_all(&buffer[..length]).await.map_err(|_| ())?;
    }
}

/// Waits until a way is not stopped; its rule.
async fn released(course: &mut watch::Receiver<Course>, index: usize) -> Result<TcpRule, ()> {
    let free = course.wait_for(|course| !course.rules[index].hold).await;
    free.map(|course| course.rules[index]).map_err(|_| ())
}
