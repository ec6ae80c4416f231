//! What the system says of a process.

use std::collections::BTreeSet;
use std::fs;

/// Descriptors it has open.
///
/// # Panics
/// If it has ended.
#[must_use]
pub(crate) fn descriptors(pid: u32) -> usize {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).expect("a process that runs");
    open.count()
}

/// Memory that it has in use, in KiB.
///
/// # Panics
/// If it has ended.
#[must_use]
pub(crate) fn memory_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process that runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().split(' ').next());
    number.and_then(|number| number.parse().ok()).expect("VmRSS")
}

/// Processor time that it has used, in hundredths of a second: by itself, and in the kernel.
///
/// # Panics
/// If it has ended.
#[must_use]
pub(crate) fn ticks_by_mode(pid: u32) -> [u64; 2] {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process that runs");
    // The name may have spaces; it is in brackets.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let mut used = fields.split_whitespace().skip(11);
    [(); 2].map(|()| {
        used.next()
            .and_then(|field| field.parse().ok())
            .unwrap_or_default()
    })
}

/// Processor time that it has used, in hundredths of a second.
///
/// # Panics
/// If it has ended.
#[must_use]
pub(crate) fn ticks(pid: u32) -> u64 {
    ticks_by_mode(pid).into_iter().sum()
}

/// Its children.
///
/// # Panics
/// If it has ended.
#[must_use]
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("a process that runs");
    let lines = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let ids = |line: String| -> Vec<u32> {
        let ids = line.split_whitespace().filter_map(|id| id.parse().ok());
        ids.collect()
    };
    lines.flat_map(ids).collect()
}

/// Processor time that it and its children have used so far, in hundredths of a second.
///
/// # Panics
/// If one has ended.
#[must_use]
pub(crate) fn ticks_of_family(pid: u32) -> u64 {
    ticks(pid) + children(pid).into_iter().map(ticks_of_family).sum::<u64>()
}

/// The TCP ports that it listens at, whatever for.
///
/// # Panics
/// If it has ended.
#[must_use]
pub(crate) fn listening(pid: u32) -> BTreeSet<u16> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).expect("a process that runs");
    let links = open
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok());
    let sockets: BTreeSet<String> = links
        .filter_map(|link| {
            let link = link.to_string_lossy();
            Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let mut ports = BTreeSet::new();
    for table in ["tcp", "tcp6"] {
        let table = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        ports.extend(table.lines().skip(1).filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // 0A: it listens.
            let is_theirs = fields.get(3) == Some(&"0A") && sockets.contains(*fields.get(9)?);
            let (_, port) = fields.get(1)?.rsplit_once(':')?;
            is_theirs.then(|| u16::from_str_radix(port, 16).ok())?
        }));
    }
    ports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_seen() {
        let own = std::process::id();
        let before = descriptors(own);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listening(own).contains(&port));
        // Other tests open and close some.
        assert!(before > 0 && memory_kib(own) > 100);
        let started = std::time::Instant::now();
        while ticks(own) == 0 {
            assert!(started.elapsed().as_secs() < 20, "no time is used");
        }
    }
}
