//! What is deployed is what is tested: the image has the files that the program fetches by itself, and documents name what there is.

use std::path::{Path, PathBuf};

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn read(path: &str) -> String {
    let path = root(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// `name==version --hash=sha256:SUM`
fn requirements() -> Vec<(String, String)> {
    let text = read("deploy/image/requirements.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pair = |line: &str| {
        let (requirement, sum) = line.split_once(" --hash=sha256:").unwrap();
        (requirement.to_owned(), sum.to_owned())
    };
    lines.map(pair).collect()
}

#[test]
fn the_image_has_what_the_program_fetches() {
    let pinned = ["transport/kv-ucx/src/fetch.rs", "gpu/model/src/fetch/pip.rs"].map(read);
    let required = requirements();
    assert_eq!(required.len(), pinned.len());
    for (requirement, sum) in required {
        let named = pinned
            .iter()
            .find(|text| text.contains(&format!("\"{requirement}\"")));
        let named = named.unwrap_or_else(|| panic!("nobody fetches {requirement}"));
        assert!(
            named.contains(&format!("\"{sum}\"")),
            "{requirement} has another sum"
        );
    }
}

/// Versions are written where nobody computes them.
#[test]
fn images_have_the_version_of_the_program() {
    let version = env!("CARGO_PKG_VERSION");
    for (path, tag) in [
        ("deploy/base/kustomization.yaml", format!("newTag: {version}")),
        (
            "deploy/overlays/cpu/kustomization.yaml",
            format!("newTag: {version}-smollm2"),
        ),
        ("deploy/Dockerfile", format!("innkeeper:{version}-smollm2")),
        ("docs/kubernetes.md", format!("innkeeper:{version}-smollm2")),
    ] {
        assert!(read(path).contains(&tag), "{path} does not say {tag}");
    }
}

/// Links and paths that a page names are there.
#[test]
fn the_page_names_what_there_is() {
    let page = read("docs/kubernetes.md");
    let mut count = 0;
    for link in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        let path = link.split('#').next().unwrap();
        if path.is_empty() || path.contains("://") {
            continue;
        }
        assert!(
            root("docs").join(path).exists(),
            "docs/kubernetes.md links to {link}"
        );
        count += 1;
    }
    let quoted = page.split('`').skip(1).step_by(2);
    for path in quoted.filter(|text| text.starts_with("deploy/") && !text.contains(' ')) {
        assert!(root(path).exists(), "docs/kubernetes.md names {path}");
        count += 1;
    }
    assert!(count > 5, "{count} paths");
}

/// All sources below a folder, in one text.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            text.push_str(&sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
    text
}

/// Each line of what somebody may try names tests that there are, or says that it is not prevented.
#[test]
fn each_line_of_the_threat_model_is_tested() {
    let page = read("docs/threat-model.md");
    let rows = page
        .lines()
        .skip_while(|line| *line != "| may try | what becomes of it | test |");
    let tables = rows.filter(|line| line.starts_with("| ") && !line.starts_with("| may try"));
    let mut named = 0;
    for row in tables {
        let tests = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        if tests == "none" {
            assert!(row.contains("**not prevented**"), "{row}");
            continue;
        }
        let mut folder = String::new();
        for name in tests.split('`').skip(1).step_by(2) {
            if name.contains('/') {
                folder = sources(&root(name));
                continue;
            }
            assert!(
                folder.contains(&format!("fn {name}(")),
                "{name} is no test: {row}"
            );
            named += 1;
        }
    }
    assert!(named > 50, "the tables are read: {named} tests");
}
