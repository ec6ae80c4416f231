//! The addresses a gateway listens on: which setting each comes from, and what to do where one cannot be had.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use anyhow::{Result, anyhow};

use crate::config::Config;

/// One address to listen on.
#[derive(Copy, Clone)]
pub(crate) struct Port {
    /// The configuration key.
    pub(crate) key: &'static str,
    /// The flag of `up` and `gateway` that stands for it.
    flag: &'static str,
    pub(crate) address: SocketAddr,
    tcp: bool,
    udp: bool,
}

impl Port {
    /// Whether the address can be had now.
    pub(crate) fn probe(&self) -> io::Result<()> {
        if self.tcp {
            TcpListener::bind(self.address)?;
        }
        if self.udp {
            UdpSocket::bind(self.address)?;
        }
        Ok(())
    }

    /// What to say when it cannot.
    pub(crate) fn refused(&self, error: &io::Error) -> anyhow::Error {
        let Self {
            key, flag, address, ..
        } = self;
        anyhow!(
            "{key}: cannot listen on {address}: {error}; give another address with {flag} ADDR, or set {key}"
        )
    }
}

/// Plain HTTP for clients.
pub(crate) fn http(config: &Config) -> Port {
    Port {
        key: "api.http",
        flag: "--http",
        address: config.api.http,
        tcp: true,
        udp: false,
    }
}

/// HTTPS and HTTP/3 for clients.
pub(crate) fn https(config: &Config) -> Port {
    Port {
        key: "api.https",
        flag: "--https",
        address: config.api.https,
        tcp: true,
        udp: true,
    }
}

/// For operators.
pub(crate) fn admin(config: &Config) -> Port {
    Port {
        key: "admin.listen",
        flag: "--admin",
        address: config.admin.listen,
        tcp: true,
        udp: false,
    }
}

/// For operators of a worker. Port 0 is any that is free.
pub(crate) fn worker_admin(config: &Config) -> Port {
    Port {
        key: "admin.worker",
        flag: "--admin",
        address: config.admin.worker,
        tcp: true,
        udp: false,
    }
}

/// For workers.
pub(crate) fn mesh(config: &Config) -> Port {
    Port {
        key: "mesh.listen",
        flag: "--listen",
        address: config.mesh.listen,
        tcp: false,
        udp: true,
    }
}

/// All of a gateway's.
pub(crate) fn all(config: &Config) -> [Port; 4] {
    [http(config), https(config), admin(config), mesh(config)]
}

/// Says at once, before anything is fetched or loaded, that a gateway could not listen.
pub(crate) fn check(config: &Config) -> Result<()> {
    for port in all(config) {
        port.probe().map_err(|error| port.refused(&error))?;
    }
    Ok(())
}
