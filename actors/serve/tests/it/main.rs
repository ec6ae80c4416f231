//! The program as its user meets it: arguments, configuration, exit codes. (That it has such tests also has cargo build it for the tests
//! of whole clusters.)

mod command_line;
