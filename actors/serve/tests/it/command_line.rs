//! Flags, environment and file, and what is said of mistakes.

use std::path::Path;
use std::process::{Command, Output};

fn innkeeper(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_innkeeper"));
    command.args(arguments).envs(environment.iter().copied());
    command.output().expect("the program starts")
}

fn check_config(arguments: &[&str], environment: &[(&str, &str)], expected: &str) {
    let output = innkeeper(arguments, environment);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(
        printed.lines().any(|line| line == expected),
        "no {expected:?} in\n{printed}"
    );
}

fn check_mistake(arguments: &[&str], named: &str) {
    let output = innkeeper(arguments, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{arguments:?} is accepted");
    assert!(said.contains(named), "{arguments:?}: no {named:?} in\n{said}");
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("precedence.toml");
    std::fs::write(&file, "[worker]\nslots = 5\nchunk_tokens = 77\n").expect("written");
    let file = file.to_str().expect("a path in UTF-8");
    let environment = [("INNKEEPER_WORKER__SLOTS", "6")];
    check_config(&["config", "--config", file], &[], "slots = 5");
    check_config(&["config", "--config", file], &environment, "slots = 6");
    let flagged = ["config", "--config", file, "--set", "worker.slots=7"];
    check_config(&flagged, &environment, "slots = 7");
    check_config(&flagged, &environment, "chunk_tokens = 77");
}

#[test]
fn mistakes_are_named_and_fail() {
    check_mistake(&["config", "--set", "worker.slotz=3"], "slotz");
    check_mistake(&["config", "--config", "no/such.toml"], "no/such.toml");
    check_mistake(&["worker", "--role", "cook"], "cook");
    check_mistake(
        &[
            "gateway",
            "--set",
            "mesh.lose=[\"nonsense\"]",
            "--set",
            "model.source=no/such.gguf",
        ],
        "no/such.gguf",
    );
    check_mistake(&["rooms", "--admin", "127.0.0.1:1"], "127.0.0.1:1");
}
