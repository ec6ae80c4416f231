//! The clients' door, from outside: real listeners on loopback, a scripted service behind them.

#![allow(clippy::unwrap_used, unreachable_pub)]

mod bodies;
mod connecting;
mod errors;
mod fields;
mod harness;
mod hostile;
mod leave;
mod limits;
mod mock;
mod prompts;
mod protocols;
mod renewal;
mod shapes;
mod shutdown;
mod slow;
