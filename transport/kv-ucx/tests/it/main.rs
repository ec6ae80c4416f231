//! Two processes over real UCX: this test binary starts itself again as the other side.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod faults;
mod layout;
mod memory;
mod moves;
mod peer;
mod side;
