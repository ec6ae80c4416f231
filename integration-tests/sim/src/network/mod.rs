//! UDP between simulated hosts: datagrams that are lost, repeated, overtaken, delayed, cut off one way or both, and held by hosts that
//! are frozen. quinn runs over it as over any socket.

mod path;
mod port;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use quinn::{AsyncUdpSocket, Endpoint, EndpointConfig, ServerConfig, TokioRuntime};
use rand::Rng;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::count::Counted;
use crate::random::stream;
use path::Path;
pub(crate) use path::Weather;
use port::Port;

/// A host of the network, by its number.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub(crate) struct HostId(pub(crate) u8);

impl HostId {
    fn of(address: SocketAddr) -> Self {
        match address {
            SocketAddr::V4(v4) => Self(v4.ip().octets()[3]),
            SocketAddr::V6(_) => Self(0),
        }
    }

    /// Its address.
    #[must_use]
    pub(crate) fn address(self, port: u16) -> SocketAddr {
        (Ipv4Addr::new(10, 0, 0, self.0), port).into()
    }
}

#[derive(Debug)]
struct Datagram {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct State {
    seed: u64,
    weather: Weather,
    paths: BTreeMap<(HostId, HostId), Path>,
    cuts: BTreeSet<(HostId, HostId)>,
    /// What frozen hosts have sent and been sent.
    frozen: BTreeMap<HostId, Vec<Datagram>>,
    ports: BTreeMap<SocketAddr, Arc<Port>>,
    /// By when they arrive, and then by the order in which they were sent.
    flying: BTreeMap<(Instant, u64), Datagram>,
    sent: u64,
    opened: u64,
    counted: Counted,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// A datagram arrives before all others.
    earlier: Notify,
}

/// The network. Cloning gives the same one.
#[derive(Clone, Debug)]
pub(crate) struct Network(Arc<Shared>);

impl Network {
    /// A network, and the task that delivers, which ends with the last clone and socket. To be called within a runtime.
    #[must_use]
    pub(crate) fn start(seed: u64, weather: Weather, counted: Counted) -> Self {
        let state = State {
            seed,
            weather,
            paths: BTreeMap::new(),
            cuts: BTreeSet::new(),
            frozen: BTreeMap::new(),
            ports: BTreeMap::new(),
            flying: BTreeMap::new(),
            sent: 0,
            opened: 0,
            counted,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            earlier: Notify::new(),
        });
        tokio::spawn(deliver(Arc::downgrade(&shared)));
        Self(shared)
    }

    /// A QUIC endpoint at this address. An older one there hears and says nothing any more.
    ///
    /// # Panics
    /// If quinn refuses a socket, which it does only to one without an address.
    #[must_use]
    pub(crate) fn endpoint(&self, host: HostId, port: u16, server: Option<ServerConfig>) -> Endpoint {
        let address = host.address(port);
        let port = Arc::new(Port::new(address, Arc::downgrade(&self.0)));
        let mut config = EndpointConfig::default();
        {
            let mut state = self.0.state();
            state.opened += 1;
            let mut seed = [0; 32];
            stream(state.seed, &format!("endpoint {}", state.opened)).fill(&mut seed);
            config.rng_seed(Some(seed));
            if let Some(older) = state.ports.insert(address, Arc::clone(&port)) {
                older.close();
            }
        }
        let socket: Arc<dyn AsyncUdpSocket> = port;
        Endpoint::new_with_abstract_socket(config, server, socket, Arc::new(TokioRuntime))
            .expect("a simulated socket has an address")
    }

    /// How the network is from now on.
    pub(crate) fn set_weather(&self, weather: Weather) {
        self.0.state().weather = weather;
    }

    /// From now on nothing gets from one host to the other, or everything that the weather lets through.
    pub(crate) fn cut(&self, from: HostId, to: HostId, cut: bool) {
        let mut state = self.0.state();
        if cut {
            state.cuts.insert((from, to));
        } else {
            state.cuts.remove(&(from, to));
        }
    }

    /// From now on all that the host sends or is sent is held, until it is thawed: then it comes all at once, in order.
    pub(crate) fn freeze(&self, host: HostId) {
        self.0.state().frozen.entry(host).or_default();
    }

    /// The end of [`Network::freeze`].
    pub(crate) fn thaw(&self, host: HostId) {
        let held = self.0.state().frozen.remove(&host).unwrap_or_default();
        for datagram in held {
            if HostId::of(datagram.from) == host {
                self.0.send(datagram);
            } else {
                self.0.arrive(datagram);
            }
        }
    }

    /// The host's sockets are gone, as if its power were.
    pub(crate) fn kill(&self, host: HostId) {
        let mut state = self.0.state();
        state.frozen.remove(&host);
        state.ports.retain(|address, port| {
            let keep = HostId::of(*address) != host;
            if !keep {
                port.close();
            }
            keep
        });
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A datagram leaves its host.
    fn send(&self, datagram: Datagram) {
        let now = Instant::now();
        let mut state = self.state();
        let (from, to) = (HostId::of(datagram.from), HostId::of(datagram.to));
        if let Some(held) = state.frozen.get_mut(&from) {
            held.push(datagram);
            return;
        }
        // The cut is the fault, and counted once.
        if state.cuts.contains(&(from, to)) {
            return;
        }
        let before = state.flying.first_key_value().map(|((at, _), _)| *at);
        let (seed, weather) = (state.seed, state.weather);
        let path = state
            .paths
            .entry((from, to))
            .or_insert_with(|| Path::new(stream(seed, &format!("path {} {}", from.0, to.0))));
        let fate = path.judge(&weather);
        fate.kinds().for_each(|kind| state.counted.add(kind));
        for delay in fate.arrivals() {
            state.sent += 1;
            let key = (now + delay, state.sent);
            let copy = Datagram {
                bytes: datagram.bytes.clone(),
                ..datagram
            };
            state.flying.insert(key, copy);
        }
        let first = state.flying.first_key_value().map(|((at, _), _)| *at);
        drop(state);
        if first < before || before.is_none() {
            self.earlier.notify_one();
        }
    }

    /// A datagram comes to its host.
    fn arrive(&self, datagram: Datagram) {
        let mut state = self.state();
        if let Some(held) = state.frozen.get_mut(&HostId::of(datagram.to)) {
            held.push(datagram);
            return;
        }
        let port = state.ports.get(&datagram.to).cloned();
        drop(state);
        if let Some(port) = port {
            port.take_in(datagram);
        }
    }

    /// What has arrived by now, and when the next arrives.
    fn due(&self) -> (Vec<Datagram>, Option<Instant>) {
        let now = Instant::now();
        let mut state = self.state();
        let later = state.flying.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut state.flying, later);
        let next = state.flying.first_key_value().map(|((at, _), _)| *at);
        (due.into_values().collect(), next)
    }
}

/// Between two looks at whether the network is still there.
const PULSE: Duration = Duration::from_secs(60);

async fn deliver(network: Weak<Shared>) {
    loop {
        let Some(shared) = network.upgrade() else { return };
        let (due, next) = shared.due();
        due.into_iter().for_each(|datagram| shared.arrive(datagram));
        let until = next.unwrap_or_else(|| Instant::now() + PULSE);
        tokio::select! {
            biased;
            () = shared.earlier.notified() => {}
            () = sleep_until(until) => {}
        }
    }
}
