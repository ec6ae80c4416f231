//! A simulated socket, as quinn sees it.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

use super::{Datagram, Shared};

/// Datagrams that a socket keeps for its reader; what is beyond is lost, as in any kernel.
const INBOX_DATAGRAMS: usize = 1_024;

#[derive(Debug, Default)]
struct Inbox {
    datagrams: VecDeque<Datagram>,
    waker: Option<Waker>,
    closed: bool,
}

/// A bound socket.
#[derive(Debug)]
pub(super) struct Port {
    address: SocketAddr,
    /// Which has its sockets, and not the other way round.
    network: Weak<Shared>,
    inbox: Mutex<Inbox>,
}

impl Port {
    pub(super) fn new(address: SocketAddr, network: Weak<Shared>) -> Self {
        Self {
            address,
            network,
            inbox: Mutex::default(),
        }
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on it hears and says nothing.
    pub(super) fn close(&self) {
        let mut inbox = self.inbox();
        inbox.closed = true;
        inbox.datagrams.clear();
    }

    pub(super) fn take_in(&self, datagram: Datagram) {
        let waker = {
            let mut inbox = self.inbox();
            if inbox.closed || inbox.datagrams.len() >= INBOX_DATAGRAMS {
                return;
            }
            inbox.datagrams.push_back(datagram);
            inbox.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// There is always room to send.
#[derive(Debug)]
struct Always;

impl UdpPoller for Always {
    fn poll_writable(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncUdpSocket for Port {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Always)
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let open = !self.inbox().closed;
        if let Some(network) = self.network.upgrade().filter(|_| open) {
            network.send(Datagram {
                from: self.address,
                to: transmit.destination,
                bytes: transmit.contents.to_vec(),
            });
        }
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut inbox = self.inbox();
        let mut count = 0;
        for (buf, meta) in bufs.iter_mut().zip(meta) {
            let Some(datagram) = inbox.datagrams.pop_front() else {
                break;
            };
            let len = datagram.bytes.len().min(buf.len());
            buf[..len].copy_from_slice(&datagram.bytes[..len]);
            *meta = RecvMeta {
                addr: datagram.from,
                len,
                stride: len,
                ecn: None,
                dst_ip: None,
            };
            count += 1;
        }
        if count > 0 {
            return Poll::Ready(Ok(count));
        }
        inbox.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }

    fn may_fragment(&self) -> bool {
        false
    }
}
