use std::ffi::OsString;

use super::*;

fn set(pair: &str) -> Result<Config> {
    Config::merge(vec![Setting::set(pair)?])
}

fn environment(name: &str, value: &str) -> Result<Config> {
    let variable = (OsString::from(name), OsString::from(value));
    Config::merge(setting::of_environment([variable].into_iter())?)
}

/// The whole of what is said of a mistake.
fn check(loaded: Result<Config>, said: &str) {
    let error = format!("{:#}", loaded.expect_err(said));
    assert_eq!(error, said);
}

#[test]
fn defaults_are_valid_and_survive_a_round_trip() {
    let config = Config::merge(Vec::new()).expect("the defaults load");
    let printed = config.to_toml().expect("prints");
    assert_eq!(toml::from_str::<Config>(&printed).expect("reads back"), config);
}

/// `deploy/innkeeper.toml` is what operators read.
#[test]
fn the_reference_has_every_key_with_its_default() {
    let reference: toml::Table =
        toml::from_str(include_str!("../../../../deploy/innkeeper.toml")).expect("is TOML");
    let mut defaults = Config::default().to_table().expect("is a table");
    // A fault switch of test builds is nothing for operators.
    let mesh = defaults.get_mut("mesh").and_then(toml::Value::as_table_mut);
    mesh.expect("a section").remove("lose");
    defaults.remove("faults");
    assert_eq!(reference, defaults);
}

#[test]
fn text_becomes_what_its_key_is() {
    assert_eq!(set("worker.slots=3").expect("loads").worker.slots, 3);
    assert_eq!(set("node.name=gw-1").expect("loads").node.name, "gw-1");
    assert_eq!(set("node.name=7").expect("loads").node.name, "7");
    assert_eq!(set("node.name=\"7\"").expect("loads").node.name, "7");
    let gateways = ["a:1".to_owned(), "b:2".to_owned()];
    assert_eq!(
        set("mesh.gateways=[\"a:1\", \"b:2\"]")
            .expect("loads")
            .mesh
            .gateways,
        gateways
    );
    assert_eq!(
        environment("INNKEEPER_MESH__GATEWAYS", "a:1, b:2")
            .expect("loads")
            .mesh
            .gateways,
        gateways
    );
}

#[test]
fn what_kubernetes_says_of_a_service_configures_nothing() {
    for name in [
        "INNKEEPER_SERVICE_HOST",
        "INNKEEPER_GATEWAY_SERVICE_PORT_HTTP",
        "INNKEEPER_PORT",
        "INNKEEPER_PORT_8080_TCP_ADDR",
        "INNKEEPER_CONFIG",
        "OTHER_WORKER__SLOTS",
    ] {
        assert_eq!(
            environment(name, "1").expect("loads"),
            Config::default(),
            "{name}"
        );
    }
}

#[test]
fn a_key_that_does_not_exist_is_told_as_it_was_written_with_the_nearest() {
    check(
        set("worker.slotz=3"),
        "worker.slotz (--set worker.slotz=3): there is no such key; did you mean worker.slots?",
    );
    check(
        environment("INNKEEPER_WORKER_SLOTS", "3"),
        "worker_slots (INNKEEPER_WORKER_SLOTS=3): there is no such key; did you mean INNKEEPER_WORKER__SLOTS?",
    );
    check(
        set("worker.heartbeat_ms=300"),
        "worker.heartbeat_ms (--set worker.heartbeat_ms=300): there is no such key; did you mean mesh.heartbeat_ms?",
    );
    check(
        set("zzz=1"),
        "zzz (--set zzz=1): there is no such key; `innkeeper config` prints all there are",
    );
    check(
        set("worker.slots"),
        "--set worker.slots: write it as KEY=VALUE, such as worker.slots=8",
    );
}

#[test]
fn a_value_of_another_type_is_told_with_where_it_came_from() {
    check(
        set("worker.slots=many"),
        "worker.slots (--set worker.slots=many): invalid type: string \"many\", expected u32",
    );
    check(
        environment("INNKEEPER_API__HTTP", "here"),
        "api.http (INNKEEPER_API__HTTP=here): write an address as IP:PORT, such as 127.0.0.1:8080 or 0.0.0.0:8080",
    );
    let flag = Setting::flag("--http", "api.http", "here".into());
    check(
        Config::merge(vec![flag]),
        "api.http (--http here): write an address as IP:PORT, such as 127.0.0.1:8080 or 0.0.0.0:8080",
    );
    check(
        set("log.format=xml"),
        "log.format (--set log.format=xml): unknown variant `xml`, expected `text` or `json`",
    );
}

#[test]
fn a_value_out_of_range_is_told_with_the_range() {
    check(
        set("worker.block_tokens=15"),
        "worker.block_tokens is 15 (--set worker.block_tokens=15): it must be a power of two",
    );
    check(
        set("mesh.heartbeat_ms=500"),
        "mesh.lease_ms is 1500: it must be at least four heartbeats, which are 2000 ms (mesh.heartbeat_ms)",
    );
    check(
        set("limits.attempts=0"),
        "limits.attempts is 0 (--set limits.attempts=0): it must be from 1 to 1000",
    );
    for pair in [
        "mesh.heartbeat_ms=9223372036854775807",
        "worker.pool_mib=9223372036854775807",
        "worker.threads=100000",
        "api.max_requests=0",
        "ucx.no_progress_ms=0",
        "api.http=127.0.0.1:0",
        "node.name=my node",
        "mesh.lease_ms=3600001",
    ] {
        let error = format!("{:#}", set(pair).expect_err(pair));
        let (key, _) = pair.split_once('=').expect("a pair");
        assert!(error.starts_with(&format!("{key} is ")), "{pair}: {error}");
    }
}

#[test]
fn pages_that_may_ask_are_named_by_their_origins() {
    let cors = set("api.cors=https://chat.example.com, http://localhost:3000")
        .expect("loads")
        .api
        .cors;
    assert_eq!(cors, ["https://chat.example.com", "http://localhost:3000"]);
    assert!(set("api.cors=*").is_ok());
    for wrong in [
        "chat.example.com",
        "https://chat.example.com/",
        "https://chat.example.com/chat",
        "null",
    ] {
        check(
            set(&format!("api.cors={wrong}")),
            &format!(
                "api.cors is {wrong} (--set api.cors={wrong}): it must be origins as browsers send them, https://HOST or \
                 http://HOST:PORT, or *"
            ),
        );
    }
}

#[test]
fn there_are_fewer_than_sixty_options() {
    let options = Config::keys().len();
    assert!((20..60).contains(&options), "{options} options");
}

/// The fault switches are there in builds for tests, which this one is if the feature says so.
#[test]
fn the_fault_switches_are_keys_of_test_builds_only() {
    for switch in ["mesh.lose", "faults.listen"] {
        let known = Config::keys().iter().any(|key| key == switch);
        assert_eq!(known, cfg!(feature = "faults"), "{switch}");
    }
}

#[test]
fn traces_go_to_an_address_and_a_share_is_one() {
    let is_refused = |pair: &str, said: &str| check(set(pair), said);
    is_refused(
        "tracing.endpoint=collector:4317",
        "tracing.endpoint is collector:4317 (--set tracing.endpoint=collector:4317): it must be http://HOST:PORT, or empty; TLS is \
         a matter of a collector beside the node",
    );
    is_refused(
        "tracing.endpoint=http://collector:4318/v1/traces",
        "tracing.endpoint is http://collector:4318/v1/traces (--set tracing.endpoint=http://collector:4318/v1/traces): it must be \
         http://HOST:PORT, or empty; TLS is a matter of a collector beside the node",
    );
    is_refused(
        "tracing.sample=1.5",
        "tracing.sample is 1.5 (--set tracing.sample=1.5): it must be from 0 to 1",
    );
    for right in [
        "tracing.endpoint=http://collector:4317",
        "tracing.endpoint=http://127.0.0.1:4318/",
        "tracing.ui=https://traces.example",
        "tracing.sample=1.0",
        "tracing.protocol=http",
    ] {
        assert!(set(right).is_ok(), "{right}");
    }
}
