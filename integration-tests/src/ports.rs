//! Addresses on this machine that nobody uses.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};

/// Where a gateway listens.
#[derive(Copy, Clone, Debug)]
pub struct Ports {
    /// Plain HTTP.
    pub http: SocketAddr,
    /// HTTPS and HTTP/3.
    pub https: SocketAddr,
    /// The operators' door.
    pub admin: SocketAddr,
    /// The workers' door.
    pub mesh: SocketAddr,
}

/// Below the range that systems take outgoing ports from, so that no connection takes one before its server does.
const FIRST: u16 = 15_000;
const COUNT: u16 = 16_000;

impl Ports {
    /// Four ports that are free now, for TCP and UDP both.
    #[must_use]
    pub fn free() -> Self {
        Self {
            http: free(),
            https: free(),
            admin: free(),
            mesh: free(),
        }
    }
}

/// One port that is free now, for TCP and UDP both.
pub(crate) fn free() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Different test processes begin at different places.
    let own = u16::try_from(std::process::id() % u32::from(COUNT)).unwrap();
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + (own.wrapping_mul(61) % COUNT + step) % COUNT;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return address;
        }
    }
    panic!("no free port on this machine");
}
