//! How much memory this process may have.

use std::fs::read_to_string;

/// Where a container finds its limit: with cgroup v2, and with v1 (where no limit is a number beyond any memory).
const CGROUP: [&str; 2] = [
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
];

/// What the machine has, or the container's limit where that is less, in MiB; none where the system does not say.
pub(crate) fn total_mib() -> Option<u64> {
    let machine = read_to_string("/proc/meminfo").ok();
    let containers = CGROUP.map(|path| read_to_string(path).ok());
    let containers = containers.iter().filter_map(|text| of_cgroup(text.as_deref()?));
    let machine = machine.as_deref().and_then(of_meminfo);
    machine.into_iter().chain(containers).min()
}

/// `MemTotal:       16316412 kB`
fn of_meminfo(text: &str) -> Option<u64> {
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib >> 10)
}

/// Bytes, or `max`.
fn of_cgroup(text: &str) -> Option<u64> {
    let bytes: u64 = text.trim().parse().ok()?;
    Some(bytes >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_understood() {
        let meminfo = "MemTotal:       16316412 kB\nMemFree:  1 kB\n";
        assert_eq!(of_meminfo(meminfo), Some(15_933));
        assert_eq!(of_meminfo("MemFree: 1 kB\n"), None);
        assert_eq!(of_cgroup("2147483648\n"), Some(2_048));
        assert_eq!(of_cgroup("max\n"), None);
        let machine = of_meminfo(meminfo);
        assert!(of_cgroup("9223372036854771712\n") > machine, "v1: no limit");
        assert!(total_mib().is_none_or(|mib| mib > 0));
    }
}
