//! The committed page is what its recordings make.

use std::fs;

use evidence::{page, root};

#[test]
fn nobody_has_edited_the_page() {
    let docs = root().join("docs");
    let made = page(&docs.join("evidence")).unwrap();
    let committed = fs::read_to_string(docs.join("evidence.md")).unwrap();
    assert!(
        committed == made,
        "docs/evidence.md is not what docs/evidence makes: run `just evidence`"
    );
}

#[test]
fn what_is_not_recorded_is_said_to_be_so() {
    let nothing = std::env::temp_dir().join("a folder that nobody has made");
    let made = page(&nothing).unwrap();
    for recipe in [
        "just sim-many N",
        "just planted",
        "just model",
        "just faults",
        "just fuzz",
        "just mutants",
    ] {
        let line = format!("| not recorded: `{recipe}` writes it | not known |");
        assert!(made.contains(&line), "no {line:?} in\n{made}");
    }
    assert!(!made.contains("| yes |"), "{made}");
}
