//! The program as its user meets it: arguments, configuration, exit codes. (That it has such tests also has cargo build it for the tests
//! of whole clusters.)

mod chat;
mod command_line;
mod ports;
mod program;
mod server;
