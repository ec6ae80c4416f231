//! Flags, environment and file, and what is said of mistakes.

use std::path::Path;

use sha2::{Digest, Sha256};

use crate::program::{check_mistake, innkeeper};

fn check_config(arguments: &[&str], environment: &[(&str, &str)], expected: &str) {
    let output = innkeeper(arguments, environment);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(
        printed.lines().any(|line| line == expected),
        "no {expected:?} in\n{printed}"
    );
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
    check_mistake(
        &["config", "--set", "worker.slotz=3"],
        "innkeeper: worker.slotz (--set worker.slotz=3): there is no such key; did you mean worker.slots?",
    );
    check_mistake(
        &["config", "--config", "no/such.toml"],
        "innkeeper: the configuration file no/such.toml cannot be read",
    );
    check_mistake(&["gateway", "--set", "model.source=no/such.gguf"], "no/such.gguf");
    check_mistake(&["rooms", "--admin", "127.0.0.1:1"], "127.0.0.1:1");
    check_mistake(
        &["rooms", "--admin", "http://127.0.0.1:1/"],
        "answers on 127.0.0.1:1: ",
    );
    check_mistake(
        &["rooms", "--admin", "nowhere"],
        "--admin nowhere: write it as HOST:PORT or http://HOST:PORT, such as 127.0.0.1:9090",
    );
    check_mistake(
        &["explain", "7", "--admin", "127.0.0.1:1"],
        "give its address with --admin",
    );
    check_mistake(
        &["top", "--admin", "127.0.0.1:1"],
        "give its address with --admin",
    );
    let output = innkeeper(&["rooms", "--phase", "sleeping"], &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("sleeping") && said.contains("queued, reserving"),
        "{said}"
    );
    for (time, said) in [("soon", "500ms"), ("10", "10s is so many seconds")] {
        let output = innkeeper(&["rooms", "--older-than", time], &[]);
        assert!(
            !output.status.success() && String::from_utf8_lossy(&output.stderr).contains(said),
            "{output:?}"
        );
    }
    // Only of rooms that ended.
    let output = innkeeper(&["rooms", "--outcome", "failed"], &[]);
    assert!(
        !output.status.success() && String::from_utf8_lossy(&output.stderr).contains("--ended"),
        "{output:?}"
    );
    let output = innkeeper(&["worker", "--role", "cook"], &[]);
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("cook"));
}

/// Told at once, in one line: no worker is built again and again meanwhile.
#[test]
fn a_worker_that_cannot_be_is_told_before_anything_is_fetched() {
    let empty = format!("model.cache={}", env!("CARGO_TARGET_TMPDIR"));
    for (pair, said) in [
        (
            "worker.pool_mib=1000000000",
            "worker.pool_mib is 1000000000: it must be less than",
        ),
        (
            "ucx.bind=192.0.2.1",
            "ucx.bind is 192.0.2.1: it must be an address of this machine",
        ),
        ("mesh.gateways=nowhere", "mesh.gateways"),
    ] {
        let worker = ["worker", "--role", "prefill", "--set", &empty, "--set", pair];
        check_mistake(&worker, said);
    }
    check_mistake(&["up", "--prefill", "0"], "could serve nothing");
}

#[test]
fn a_reader_of_the_output_may_leave() {
    let mut child = crate::program::command(&["config"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}

#[test]
fn a_key_is_told_apart_from_its_entry() {
    let output = innkeeper(&["key", "team-a"], &[]);
    assert!(output.status.success(), "{output:?}");
    let entry: toml::Table = String::from_utf8_lossy(&output.stdout).parse().expect("is TOML");
    let entry = &entry["key"][0];
    let key = String::from_utf8(output.stderr).expect("a key");
    let digest: String = Sha256::digest(key.trim())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(entry["name"].as_str(), Some("team-a"));
    assert_eq!(entry["sha256"].as_str(), Some(digest.as_str()));
    check_mistake(&["key", "team a"], "a name is 1 to 64 ASCII letters");
}

#[test]
fn certificates_are_printed_as_secrets() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    let output = innkeeper(&["certs", "--folder", path, "--kubernetes"], &[]);
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8_lossy(&output.stdout);
    let named = printed
        .lines()
        .filter_map(|line| line.strip_prefix("  name: innkeeper-"));
    let named: Vec<&str> = named.collect();
    assert_eq!(named, ["mesh-gateway", "mesh-prefill", "mesh-decode", "web"]);
    check_mistake(
        &["certs", "--folder", path, "--for", "no host"],
        "--for no host: write a name or an address",
    );
}

#[test]
fn a_lock_without_a_token_is_told() {
    check_mistake(
        &["rooms", "--set", "admin.token=no/such"],
        "admin.token: cannot read no/such",
    );
}
