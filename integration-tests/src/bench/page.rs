//! How what was measured is told: Markdown that a command has written and nobody else.

use std::fmt::Write as _;
use std::path::PathBuf;

use evidence::Stamp;

use super::floor::Floor;
use crate::prepare;

/// What a benchmark has to tell.
pub(super) struct Page {
    name: &'static str,
    text: String,
}

impl Page {
    /// Begins with what was measured, of which code and on which machine.
    pub(super) fn new(name: &'static str, title: &str, what: &str) -> Self {
        let stamp = Stamp::now();
        let changed = if stamp.changed { " and changes" } else { "" };
        let mut text = format!("# {title}\n\nMade by `just bench {name}`; do not edit.\n\n");
        let _ = writeln!(
            text,
            "`{}`{changed}, {}, {} cores, {}, {}. {what}\n",
            stamp.commit,
            stamp.date,
            stamp.cores,
            stamp.cpu,
            compiler()
        );
        Self { name, text }
    }

    /// Adds text as it is.
    pub(super) fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{line}");
    }

    /// Adds what no engine here can be faster than.
    pub(super) fn floor(&mut self, floor: &Floor) {
        let [small, large] = floor.bandwidth.map(|bytes| bytes / 1e9);
        let products = match &floor.products {
            Some((products, assumed)) => format!(
                "; {:.2} T products of 8-bit numbers a second at most ({assumed})",
                products / 1e12
            ),
            None => String::new(),
        };
        self.line(&format!(
            "The floor: memory is read at {small:.1} GB/s in pages of 4 KiB and at {large:.1} GB/s where pages may be large{products}.\n"
        ));
    }

    /// Adds the head of a table.
    pub(super) fn head(&mut self, columns: &[&str]) {
        self.row(columns);
        self.row(&vec!["---"; columns.len()]);
    }

    /// Adds a row.
    pub(super) fn row<S: AsRef<str>>(&mut self, cells: &[S]) {
        let cells: Vec<String> = cells
            .iter()
            .map(|cell| cell.as_ref().replace('|', "\\|"))
            .collect();
        self.line(&format!("| {} |", cells.join(" | ")));
    }

    /// Adds a row of a table of two columns.
    pub(super) fn entry(&mut self, what: &str, value: &str) {
        self.row(&[what, value]);
    }

    /// The text; and writes it to `docs/benchmarks-NAME.md` if it is to be kept.
    ///
    /// # Panics
    /// If it cannot be written.
    pub(super) fn done(self, keep: bool) -> String {
        if keep {
            let path = docs().join(format!("benchmarks-{}.md", self.name));
            std::fs::write(&path, &self.text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        self.text
    }
}

fn docs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

/// What the binary was built with, as far as that can be told now; and for which machine it was.
fn compiler() -> String {
    let said = std::process::Command::new("rustc").arg("--version").output();
    let version = said.ok().and_then(|said| String::from_utf8(said.stdout).ok());
    let profile = prepare::innkeeper(&["--version"]).1;
    format!(
        "{}, {}",
        profile.trim(),
        version.as_deref().unwrap_or("an unknown compiler").trim()
    )
}
