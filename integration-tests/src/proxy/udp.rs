//! A proxy for UDP: one address that peers dial, and a socket for each of them towards the server.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::net::UdpSocket;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{UdpRule, Way};

/// Packets that wait, of each way, and packets that are late: more are lost, as in a router.
const MOST_WAITING: usize = 8_192;
/// Peers that dial: a worker that dials anew has a new port.
const MOST_FLOWS: usize = 256;
const LARGEST: usize = 65_536;

/// What went one way, in packets.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct Counts {
    /// That came to the proxy.
    pub came: u64,
    /// Of those, lost on purpose.
    pub lost: u64,
    /// Of those, that came twice.
    pub twice: u64,
    /// Copies that the proxy sent on.
    pub sent: u64,
}

/// A proxy for UDP. It ends when dropped.
pub struct UdpProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Owns everything that runs for it.
    _tasks: JoinSet<()>,
}

struct Shared {
    server: SocketAddr,
    /// What peers dial.
    front: UdpSocket,
    state: Mutex<State>,
    runtime: Handle,
}

struct State {
    rules: [UdpRule; 2],
    random: StdRng,
    held: [VecDeque<Packet>; 2],
    counts: [Counts; 2],
    late: usize,
    flows: BTreeMap<SocketAddr, Flow>,
}

/// One peer that dials.
struct Flow {
    socket: Arc<UdpSocket>,
    _pump: JoinSet<()>,
}

struct Packet {
    bytes: Vec<u8>,
    exit: Exit,
}

/// Where a packet leaves.
#[derive(Clone)]
enum Exit {
    Server(Arc<UdpSocket>),
    Peer(SocketAddr),
}

impl UdpProxy {
    /// A proxy on a free port of this machine that passes everything on to `server`; what it decides by chance follows from `seed`.
    ///
    /// # Panics
    /// If no port can be had.
    pub async fn start(server: SocketAddr, seed: u64) -> Self {
        let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = front.local_addr().expect("it is bound");
        // Tokio takes a new socket for a full one until it has been waited for.
        front.writable().await.expect("a new socket");
        let state = State {
            rules: [UdpRule::PASS; 2],
            random: StdRng::seed_from_u64(seed),
            held: Default::default(),
            counts: Default::default(),
            late: 0,
            flows: BTreeMap::new(),
        };
        let shared = Arc::new(Shared {
            server,
            front,
            state: Mutex::new(state),
            runtime: Handle::current(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(pump_out(Arc::clone(&shared)));
        Self {
            address,
            shared,
            _tasks: tasks,
        }
    }

    /// What to dial instead of the server.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The rule for one way from now on. What the last one held goes first, in order.
    pub fn set(&self, way: Way, rule: UdpRule) {
        let mut state = self.shared.state();
        state.rules[way.index()] = rule;
        if !rule.hold {
            for packet in std::mem::take(&mut state.held[way.index()]) {
                self.shared.decide(&mut state, way, packet);
            }
        }
    }

    /// The rule for both ways from now on.
    pub fn set_both(&self, rule: UdpRule) {
        Way::BOTH.into_iter().for_each(|way| self.set(way, rule));
    }

    /// What went one way so far.
    #[must_use]
    pub fn counts(&self, way: Way) -> Counts {
        self.shared.state().counts[way.index()]
    }
}

impl Drop for UdpProxy {
    fn drop(&mut self) {
        // They hold what holds them.
        self.shared.state().flows.clear();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A packet has come.
    fn take(self: &Arc<Self>, way: Way, packet: Packet) {
        let mut state = self.state();
        state.counts[way.index()].came += 1;
        self.decide(&mut state, way, packet);
    }

    fn decide(self: &Arc<Self>, state: &mut State, way: Way, packet: Packet) {
        let index = way.index();
        let rule = state.rules[index];
        if rule.hold {
            match state.held[index].len() < MOST_WAITING {
                true => state.held[index].push_back(packet),
                false => state.counts[index].lost += 1,
            }
            return;
        }
        let fates = rule.fates(&mut state.random);
        match fates.len() {
            0 => state.counts[index].lost += 1,
            1 => {}
            _ => state.counts[index].twice += 1,
        }
        for takes in fates {
            if takes.is_zero() {
                state.counts[index].sent += 1;
                self.send(&packet);
            } else if state.late < MOST_WAITING {
                state.late += 1;
                self.send_later(way, takes, &packet);
            }
        }
    }

    fn send_later(self: &Arc<Self>, way: Way, takes: Duration, packet: &Packet) {
        let (shared, exit, bytes) = (Arc::clone(self), packet.exit.clone(), packet.bytes.clone());
        // Not awaited: it lasts as long as the packet is late, and is one of at most `MOST_WAITING`.
        self.runtime.spawn(async move {
            sleep(takes).await;
            shared.send(&Packet { bytes, exit });
            let mut state = shared.state();
            state.late -= 1;
            state.counts[way.index()].sent += 1;
        });
    }

    /// What cannot be sent is lost, as everywhere with UDP.
    fn send(&self, packet: &Packet) {
        let _ = match &packet.exit {
            Exit::Server(socket) => socket.try_send(&packet.bytes),
            Exit::Peer(peer) => self.front.try_send_to(&packet.bytes, *peer),
        };
    }

    /// The socket towards the server for a peer; made if it is a new one.
    async fn flow(self: &Arc<Self>, peer: SocketAddr) -> Option<Arc<UdpSocket>> {
        if let Some(flow) = self.state().flows.get(&peer) {
            return Some(Arc::clone(&flow.socket));
        }
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await.ok()?;
        socket.connect(self.server).await.ok()?;
        socket.writable().await.ok()?;
        let socket = Arc::new(socket);
        let mut pump = JoinSet::new();
        pump.spawn(pump_back(Arc::clone(self), Arc::clone(&socket), peer));
        let mut state = self.state();
        if state.flows.len() >= MOST_FLOWS {
            state.flows.pop_first();
        }
        let flow = Flow {
            socket: Arc::clone(&socket),
            _pump: pump,
        };
        state.flows.insert(peer, flow);
        Some(socket)
    }
}

async fn pump_out(shared: Arc<Shared>) {
    let mut buffer = vec![0; LARGEST];
    loop {
        // An error is an echo of a packet to a peer that is gone.
        let Ok((length, peer)) = shared.front.recv_from(&mut buffer).await else {
            continue;
        };
        if let Some(socket) = shared.flow(peer).await {
            let packet = Packet {
                bytes: buffer[..length].to_vec(),
                exit: Exit::Server(socket),
            };
            shared.take(Way::Out, packet);
        }
    }
}

async fn pump_back(shared: Arc<Shared>, socket: Arc<UdpSocket>, peer: SocketAddr) {
    let mut buffer = vec![0; LARGEST];
    loop {
        // An error is an echo of a packet to a server that is not there (yet).
        let Ok(length) = socket.recv(&mut buffer).await else {
            continue;
        };
        let packet = Packet {
            bytes: buffer[..length].to_vec(),
            exit: Exit::Peer(peer),
        };
        shared.take(Way::Back, packet);
    }
}
