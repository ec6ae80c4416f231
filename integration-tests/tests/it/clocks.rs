//! No source decides by the wall clock, which may step: deadlines, leases and orders go by the monotonic one. Where the wall clock is read, it
//! is shown to people, makes a number that nothing compares with the time, or is held against a date that people wrote.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;

/// Where it is read, and what for.
const ALLOWED: &[(&str, &str)] = &[
    (
        "actors/serve/src/door/mod.rs",
        "`created` of the model, which clients are shown",
    ),
    (
        "actors/serve/src/compose/mod.rs",
        "the incarnation's number: greater at a later start; links judge it, no deadline does",
    ),
    (
        "actors/serve/src/compose/identity.rs",
        "from when and until when a certificate that is made is good",
    ),
    (
        "actors/serve/src/keys/ring.rs",
        "the day on which a key expires, which its operator wrote as a date",
    ),
    (
        "actors/serve/src/admin/moment.rs",
        "when something was, for people to read",
    ),
    (
        "actors/serve/src/telemetry/convert.rs",
        "the times of spans, and how far the clock was set since",
    ),
    (
        "actors/serve/src/telemetry/tests.rs",
        "that those times are the world's",
    ),
    ("transport/api/src/ids.rs", "`created` of an answer, and its id"),
];

/// How a source could come by it.
const WALL_CLOCKS: &[&str] = &[
    "SystemTime",
    "UNIX_EPOCH",
    "CLOCK_REALTIME",
    "ClockId::Realtime",
    "chrono::",
    "OffsetDateTime",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_source_decides_by_the_wall_clock() {
    let metadata = MetadataCommand::new().no_deps().exec().unwrap();
    let root = metadata.workspace_root.as_std_path();
    let mut files = Vec::new();
    for package in metadata.workspace_packages() {
        let folder = package.manifest_path.parent().unwrap().join("src");
        // Tests of clusters ask clocks of their own.
        if !package.name.contains("integration-tests") && folder.is_dir() {
            sources(folder.as_std_path(), &mut files);
        }
    }
    assert!(files.len() > 100, "the sources are here: {}", files.len());
    let mut reads = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let hits = text
            .lines()
            .filter(|line| WALL_CLOCKS.iter().any(|clock| line.contains(clock)));
        let hits: Vec<String> = hits.map(str::to_owned).collect();
        if !hits.is_empty() {
            let name = file.strip_prefix(root).unwrap().display().to_string();
            reads.insert(name, hits);
        }
    }
    let allowed: Vec<&str> = ALLOWED.iter().map(|(file, _)| *file).collect();
    for (file, lines) in &reads {
        assert!(
            allowed.contains(&file.as_str()),
            "{file} reads the wall clock: {lines:#?}"
        );
    }
    for (file, what) in ALLOWED {
        assert!(
            reads.contains_key(*file),
            "{file} does not read it any more ({what}): take it off the list"
        );
    }
}
