//! The program as its user meets it.

use std::process::{Command, Output};

/// The program with these arguments, and none of our variables.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_innkeeper"));
    command.args(arguments);
    command
}

pub(crate) fn innkeeper(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = command(arguments);
    command.envs(environment.iter().copied());
    command.output().expect("the program starts")
}

/// It fails, and says this in its one line.
pub(crate) fn check_mistake(arguments: &[&str], said: &str) {
    let output = innkeeper(arguments, &[]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{arguments:?} is accepted");
    assert!(text.contains(said), "{arguments:?}: no {said:?} in\n{text}");
    assert_eq!(text.lines().count(), 1, "{arguments:?}: {text}");
}
