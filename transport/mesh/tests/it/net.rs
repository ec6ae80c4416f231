//! A network in memory: sockets that quinn takes for UDP ones, a fixed latency, and directions that can be cut.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, UdpPoller};
use tokio::time::Instant;

const LATENCY: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
struct Inbox {
    packets: VecDeque<(SocketAddr, Vec<u8>)>,
    waker: Option<Waker>,
}

/// One packet that was sent: when, whence, whither, how long.
pub(crate) type Sent = (Duration, SocketAddr, SocketAddr, usize);

#[derive(Debug, Default)]
struct State {
    inboxes: BTreeMap<SocketAddr, Arc<Mutex<Inbox>>>,
    cut: BTreeSet<(SocketAddr, SocketAddr)>,
    sent: Vec<(Instant, SocketAddr, SocketAddr, usize)>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Net(Arc<Mutex<State>>);

impl Net {
    /// An endpoint at this address. A later one takes the address over, as a restarted process does.
    pub(crate) fn endpoint(&self, address: SocketAddr, server: Option<ServerConfig>) -> Endpoint {
        let inbox = Arc::<Mutex<Inbox>>::default();
        // Connection ids and the like: a simulation must be able to repeat.
        let mut seed = [0; 32];
        seed[..2].copy_from_slice(&address.port().to_le_bytes());
        let mut config = EndpointConfig::default();
        config.rng_seed(Some(seed));
        self.0.lock().unwrap().inboxes.insert(address, Arc::clone(&inbox));
        let socket = Arc::new(Socket {
            net: self.clone(),
            address,
            inbox,
        });
        Endpoint::new_with_abstract_socket(config, server, socket, Arc::new(TokioRuntime)).unwrap()
    }

    /// Loses everything from one address to another, or no more.
    pub(crate) fn cut(&self, from: SocketAddr, to: SocketAddr, cut: bool) {
        let mut state = self.0.lock().unwrap();
        if cut {
            state.cut.insert((from, to));
        } else {
            state.cut.remove(&(from, to));
        }
    }

    /// Every packet that was sent so far.
    pub(crate) fn trace(&self, began: Instant) -> Vec<Sent> {
        let sent = &self.0.lock().unwrap().sent;
        sent.iter()
            .map(|(at, from, to, bytes)| (*at - began, *from, *to, *bytes))
            .collect()
    }

    /// One packet of anything, from anyone.
    pub(crate) fn inject(&self, from: SocketAddr, to: SocketAddr, packet: Vec<u8>) {
        let net = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(LATENCY).await;
            let inbox = net.0.lock().unwrap().inboxes.get(&to).cloned();
            if let Some(inbox) = inbox {
                let mut inbox = inbox.lock().unwrap();
                inbox.packets.push_back((from, packet));
                if let Some(waker) = inbox.waker.take() {
                    waker.wake();
                }
            }
        });
    }
}

#[derive(Debug)]
struct Socket {
    net: Net,
    address: SocketAddr,
    inbox: Arc<Mutex<Inbox>>,
}

#[derive(Debug)]
struct AlwaysWritable;

impl UdpPoller for AlwaysWritable {
    fn poll_writable(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncUdpSocket for Socket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(AlwaysWritable)
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let to = transmit.destination;
        let size = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        if !self.net.0.lock().unwrap().cut.contains(&(self.address, to)) {
            for packet in transmit.contents.chunks(size) {
                let sent = (Instant::now(), self.address, to, packet.len());
                self.net.0.lock().unwrap().sent.push(sent);
                self.net.inject(self.address, to, packet.to_vec());
            }
        }
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut inbox = self.inbox.lock().unwrap();
        let Some((from, packet)) = inbox.packets.pop_front() else {
            inbox.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        bufs[0][..packet.len()].copy_from_slice(&packet);
        meta[0] = RecvMeta {
            addr: from,
            len: packet.len(),
            stride: packet.len(),
            ecn: None,
            dst_ip: None,
        };
        Poll::Ready(Ok(1))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }

    fn may_fragment(&self) -> bool {
        false
    }
}
