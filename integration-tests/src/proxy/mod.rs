//! Proxies that a test puts in the path of a link, and switches while it runs: one for UDP, which carries the links between nodes, and one
//! for TCP, which carries clients' HTTP.
//!
//! Each has a rule for each way. What a rule makes of a packet is decided in [`UdpRule::fates`], without a socket, a clock or a task.

mod rule;
mod tcp;
mod udp;

#[cfg(test)]
mod tests;

pub use rule::{TcpRule, UdpRule};
pub use tcp::TcpProxy;
pub(crate) use tcp::pass_on;
pub use udp::{Counts, UdpProxy};

/// A direction, as the one who dials sees it.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Way {
    /// From the dialling end: a worker, a client.
    Out,
    /// Back to it.
    Back,
}

impl Way {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Out, Self::Back];

    fn index(self) -> usize {
        match self {
            Self::Out => 0,
            Self::Back => 1,
        }
    }
}
