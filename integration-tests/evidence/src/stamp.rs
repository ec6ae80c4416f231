//! Of which code, when, and on which machine.

use std::fs;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::files::root;

/// Where a recording comes from. Taken when what is recorded begins.
#[derive(Clone, Eq, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stamp {
    /// The commit, in short; `unknown` where that cannot be told.
    pub commit: String,
    /// Whether there were changes that are not committed, other than below `docs`.
    pub changed: bool,
    /// When it began, in UTC.
    pub date: String,
    /// Cores that the process may use.
    pub cores: usize,
    /// What the processor says it is.
    pub cpu: String,
}

/// What is not known.
const UNKNOWN: &str = "unknown";

impl Stamp {
    /// Of this moment, and of the tree that this crate was built in.
    #[must_use]
    pub fn now() -> Self {
        let commit = said("git", &["rev-parse", "--short=10", "HEAD"]);
        let changes = said("git", &["status", "--porcelain", "--", ".", ":!docs"]);
        Self {
            changed: commit.is_some() && changes.is_some_and(|changes| !changes.is_empty()),
            commit: commit.unwrap_or_else(|| UNKNOWN.to_owned()),
            date: said("date", &["-u", "+%Y-%m-%d %H:%M"]).unwrap_or_else(|| UNKNOWN.to_owned()),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            cpu: cpu(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        }
    }

    /// The commit, and whether it was quite that.
    pub(crate) fn code(&self) -> String {
        let changed = if self.changed { " and changes" } else { "" };
        format!("`{}`{changed}", self.commit)
    }

    /// The machine.
    pub(crate) fn machine(&self) -> String {
        format!("{} cores, {}", self.cores, self.cpu)
    }
}

/// What a program says, if it does its work.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The processor's name, out of `/proc/cpuinfo`.
fn cpu(info: &str) -> String {
    let name = info.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_owned())
    });
    name.unwrap_or_else(|| UNKNOWN.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Stamp, UNKNOWN, cpu};

    #[test]
    fn a_processor_is_named() {
        let info = "processor\t: 0\nmodel name\t: Some CPU @ 2.00GHz\nprocessor\t: 1\nmodel name\t: Other\n";
        assert_eq!(cpu(info), "Some CPU @ 2.00GHz");
        assert_eq!(cpu("Hardware : a board\n"), UNKNOWN);
    }

    #[test]
    fn a_stamp_survives_being_kept() {
        let stamp = Stamp::now();
        assert!(stamp.cores > 0);
        let kept = serde_json::to_string(&stamp).unwrap();
        assert_eq!(serde_json::from_str::<Stamp>(&kept).unwrap(), stamp);
    }
}
