//! Whole clusters in one process: a gateway and its workers over real QUIC on loopback, a mock for a model. Every test ends with
//! [`cluster::Cluster::quiesce`]: nothing is held anywhere, and no byte was foreign.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cluster;

mod aborts;
mod deadlines;
mod engines;
mod eviction;
mod fences;
mod gateways;
mod inputs;
mod links;
mod orders;
mod overload;
mod owners;
mod pulls;
mod readers;
mod serving;
mod storm;
mod traces;
