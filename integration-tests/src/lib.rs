//! A cluster of real processes for the tests: started on free ports, watched through its admin listener, and ended whatever happens; and the
//! [fault matrix](matrix) and the [benchmarks](mod@bench) that are run on such clusters.
//!
//! Everything here panics with what is wrong: a test that cannot go on has failed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod admin;
pub mod bench;
mod cluster;
mod collector;
mod h2;
mod http;
pub mod matrix;
mod netns;
mod ports;
mod prepare;
mod proc;
mod process;
mod prometheus;
mod proxy;
mod stream;

pub use admin::{Holder, Metrics, Room, Worker};
pub use cluster::{Cluster, MODEL};
pub use collector::{Collector, SpanSeen};
pub use http::{Response, get, post};
pub use netns::{Lane, Net};
pub use ports::Ports;
pub use prepare::{innkeeper, target};
pub use process::{Process, Signal};
pub use prometheus::{Prometheus, promtool};
pub use proxy::{Counts, TcpProxy, TcpRule, UdpProxy, UdpRule, Way};
pub use stream::{Answer, Stream, answer, answers, completion};
