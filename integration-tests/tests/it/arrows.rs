//! Which crate may depend on which: the table of the architecture.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

type Arrows = BTreeMap<String, BTreeSet<String>>;

/// What each crate may depend on, of ours. Crates that are not here may depend on everything.
const TABLE: &[(&str, &[&str])] = &[
    ("planted", &[]),
    ("room", &[]),
    ("observe", &["room"]),
    ("wire", &[]),
    ("kv", &[]),
    ("kv-ucx", &["kv", "pypi"]),
    ("pypi", &[]),
    ("mesh", &["wire"]),
    ("api", &[]),
    ("engine", &["kv"]),
    ("model", &["engine", "pypi"]),
    ("cpu", &["engine"]),
    ("mock", &["engine"]),
    ("runtime", &["room", "observe", "wire", "mesh", "kv", "engine"]),
];

/// It chooses and starts all the others.
const BINARY: &str = "innkeeper";

/// They break all the others, and are part of no release.
const TESTS: &[&str] = &["integration-tests", "sim", "fuzz-targets", "evidence", "replay"];

/// Features for tests.
const TEST_FEATURES: &[&str] = &["faults", "planted"];

/// Whoever has the feature `planted` has this crate, and nobody else.
const PLANTED: &str = "innkeeper-planted";

/// The arrows that are not in the table, and the crates that are in neither list.
fn wrong(arrows: &Arrows) -> Vec<String> {
    let table: BTreeMap<&str, &[&str]> = TABLE.iter().copied().collect();
    let mut wrong = Vec::new();
    for (from, targets) in arrows {
        match table.get(from.as_str()) {
            Some(allowed) => wrong.extend(
                targets
                    .iter()
                    .filter(|to| !allowed.contains(&to.as_str()))
                    .map(|to| format!("{from} -> {to}")),
            ),
            None if from == BINARY || TESTS.contains(&from.as_str()) => {}
            None => wrong.push(format!("{from} is not in the table")),
        }
    }
    wrong
}

fn workspace() -> Metadata {
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .no_deps()
        .other_options(["--locked".to_owned(), "--offline".to_owned()])
        .exec()
        .unwrap()
}

fn short(name: &str) -> String {
    name.strip_prefix("innkeeper-").unwrap_or(name).to_owned()
}

/// Our crates and what of ours each depends on, other than for its tests.
fn arrows() -> Arrows {
    let metadata = workspace();
    let packages = metadata.workspace_packages();
    packages
        .iter()
        .map(|package| {
            let ours = package.dependencies.iter().filter(|dependency| {
                dependency.path.is_some()
                    && dependency.kind != DependencyKind::Development
                    && !(dependency.optional && dependency.name == PLANTED)
            });
            (
                short(package.name.as_str()),
                ours.map(|dependency| short(&dependency.name)).collect(),
            )
        })
        .collect()
}

#[test]
fn every_arrow_is_in_the_table() {
    let arrows = arrows();
    assert_eq!(wrong(&arrows), Vec::<String>::new());
    let named = TABLE.iter().map(|(name, _)| name).chain(TESTS).chain([&BINARY]);
    for name in named {
        assert!(
            arrows.contains_key(*name),
            "the table names {name}, which is no crate"
        );
    }
    // The look at the manifests sees arrows at all.
    assert!(arrows["runtime"].contains("room") && arrows["kv-ucx"].contains("kv"));
}

#[test]
fn an_arrow_that_is_not_in_the_table_is_found() {
    let mut arrows = arrows();
    arrows.get_mut("room").unwrap().insert("wire".to_owned());
    arrows.insert("newcomer".to_owned(), BTreeSet::new());
    assert_eq!(wrong(&arrows), ["newcomer is not in the table", "room -> wire"]);
}

/// Fault switches and planted bugs are for tests: no crate has them by default, or asks for them otherwise than for its tests.
#[test]
fn a_release_has_no_features_for_tests() {
    let metadata = workspace();
    let mut asked_for_tests = 0;
    for package in metadata.workspace_packages() {
        let mut on: Vec<&str> = vec!["default"];
        while let Some(feature) = on.pop() {
            assert!(
                !TEST_FEATURES.contains(&feature),
                "{} has {feature} by default",
                package.name
            );
            let enabled = package.features.get(feature);
            on.extend(enabled.into_iter().flatten().map(String::as_str));
        }
        let is_test = TESTS.contains(&short(package.name.as_str()).as_str());
        for dependency in &package.dependencies {
            let for_tests = |feature: &String| TEST_FEATURES.contains(&feature.as_str());
            let asks = dependency.features.iter().any(for_tests)
                || dependency.name == PLANTED && !dependency.optional;
            if is_test || dependency.kind == DependencyKind::Development {
                asked_for_tests += usize::from(asks);
            } else {
                assert!(!asks, "{} of {}", package.name, dependency.name);
            }
        }
    }
    assert!(
        asked_for_tests > 0,
        "the look at the manifests sees those features at all"
    );
}
