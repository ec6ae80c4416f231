//! Both ends of links in one process, over a simulated network and simulated time (and once over real sockets).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod certificates;
mod digests;
mod endings;
mod faults;
mod frames;
mod hello;
mod hostile;
mod net;
mod nodes;
mod renewal;
mod repeat;
mod silence;
mod sockets;
