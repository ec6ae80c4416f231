//! The protocol, tested as its users see it.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod desk;
mod restart;
mod room_kit;
mod room_life;
mod room_prop;
mod room_table;
mod watch;
