//! The protocol, tested as its users see it.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod allowance;
mod desk;
mod desk_credit;
mod desk_fair;
mod desk_kit;
mod host_growth;
mod host_kit;
mod host_life;
mod host_prop;
mod host_share;
mod host_table;
mod host_world;
mod index;
mod ledger_ops;
mod ledger_prop;
mod model;
mod policies;
mod restart;
mod room_drain;
mod room_kit;
mod room_life;
mod room_prop;
mod room_table;
mod shown;
mod together;
mod watch;
mod world;
