//! Socket addresses as C has them.

use std::net::{IpAddr, SocketAddr};

use crate::sys::SockAddr;

const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// A `sockaddr_in` or `sockaddr_in6`.
pub(super) struct RawAddress {
    bytes: [u8; 28],
    len: u32,
}

impl RawAddress {
    pub(super) fn new(address: SocketAddr) -> Self {
        let mut bytes = [0u8; 28];
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        let (family, len) = match address.ip() {
            IpAddr::V4(ip) => {
                bytes[4..8].copy_from_slice(&ip.octets());
                (AF_INET, 16)
            }
            IpAddr::V6(ip) => {
                bytes[8..24].copy_from_slice(&ip.octets());
                (AF_INET6, 28)
            }
        };
        bytes[..2].copy_from_slice(&family.to_ne_bytes());
        Self { bytes, len }
    }

    /// Points into `self`.
    pub(super) fn as_c(&self) -> SockAddr {
        SockAddr {
            addr: self.bytes.as_ptr().cast(),
            len: self.len,
        }
    }
}

/// The port of a C socket address: family and, in network order, port open every one.
pub(super) fn port(raw: &[u64; 16]) -> u16 {
    let head = raw[0].to_ne_bytes();
    u16::from_be_bytes([head[2], head[3]])
}
