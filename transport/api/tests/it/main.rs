//! The clients' door, from outside: real listeners on loopback, a scripted service behind them.

#![allow(clippy::unwrap_used, unreachable_pub)]

mod errors;
mod fields;
mod harness;
mod leave;
mod limits;
mod mock;
mod protocols;
mod shapes;
mod shutdown;
