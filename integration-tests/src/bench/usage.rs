//! What processes use: processor time by process and thread, and memory.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Sub;

use crate::proc;

/// What a server's processes have used up to some moment, or between two.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Usage {
    /// By what each process is.
    pub(super) processes: BTreeMap<String, Used>,
}

/// What a process has used; processes that are the same thing are one.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Used {
    /// Processor time, threads that have ended included, to a hundredth of a second.
    pub(super) cpu_seconds: f64,
    /// Of those, in the kernel.
    pub(super) kernel_seconds: f64,
    /// Memory in use, in MiB.
    pub(super) memory_mib: f64,
    /// The most of it that there was since the process began.
    pub(super) peak_mib: f64,
    /// Times that a thread waited for something, and times that one was made to wait.
    pub(super) switches: [u64; 2],
    /// Processor time in seconds by name of thread, numbers left out, of those that run.
    pub(super) threads: BTreeMap<String, f64>,
}

impl Usage {
    /// Of these processes and all their children.
    pub(super) fn of(families: &[u32]) -> Self {
        let mut usage = Self::default();
        for &pid in families {
            usage.add_family(pid);
        }
        usage
    }

    fn add_family(&mut self, pid: u32) {
        let used = self.processes.entry(label(pid)).or_default();
        used.add(pid);
        for child in proc::children(pid) {
            self.add_family(child);
        }
    }

    /// Of all processes.
    pub(super) fn cpu_seconds(&self) -> f64 {
        self.sum(|used| used.cpu_seconds)
    }

    /// Processor time in seconds of all threads that run, to a nanosecond.
    pub(super) fn thread_seconds(&self) -> f64 {
        self.sum(|used| used.threads.values().sum())
    }

    /// The sum of what each process had at most, in MiB.
    pub(super) fn peak_mib(&self) -> f64 {
        self.sum(|used| used.peak_mib)
    }

    fn sum(&self, what: impl Fn(&Used) -> f64) -> f64 {
        self.processes.values().map(what).sum()
    }
}

impl Used {
    fn add(&mut self, pid: u32) {
        let [user, kernel] = proc::ticks_by_mode(pid);
        self.cpu_seconds += (user + kernel) as f64 / 100.0;
        self.kernel_seconds += kernel as f64 / 100.0;
        let [now, peak] = memory_kib(pid);
        self.memory_mib += now as f64 / 1024.0;
        self.peak_mib += peak as f64 / 1024.0;
        let threads = fs::read_dir(format!("/proc/{pid}/task"));
        for thread in threads.into_iter().flatten().flatten() {
            let read = |what: &str| fs::read_to_string(thread.path().join(what)).unwrap_or_default();
            let name = read("comm");
            let name = name
                .trim()
                .trim_end_matches(|c: char| c.is_ascii_digit() || c == '-');
            let times = read("schedstat");
            let nanoseconds = times.split(' ').next().and_then(|time| time.parse::<f64>().ok());
            let seconds = nanoseconds.unwrap_or_default() / 1e9;
            *self.threads.entry(name.to_owned()).or_default() += seconds;
            let status = read("status");
            for (kind, name) in ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"]
                .iter()
                .enumerate()
            {
                self.switches[kind] += field(&status, name).unwrap_or_default();
            }
        }
    }
}

/// What was used since another moment; memory is that of the later one.
impl Sub<&Self> for Usage {
    type Output = Self;

    fn sub(mut self, before: &Self) -> Self {
        for (label, used) in &mut self.processes {
            let Some(before) = before.processes.get(label) else {
                continue;
            };
            used.cpu_seconds -= before.cpu_seconds;
            used.kernel_seconds -= before.kernel_seconds;
            for (switches, before) in used.switches.iter_mut().zip(before.switches) {
                *switches = switches.saturating_sub(before);
            }
            for (thread, seconds) in &mut used.threads {
                *seconds -= before.threads.get(thread).copied().unwrap_or_default();
            }
        }
        self
    }
}

/// What a process is, by its command.
fn label(pid: u32) -> String {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<String> = command
        .split(|byte| *byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    label_of(&words)
}

/// Options whose values say what a process is for.
const KINDS: [&str; 2] = ["--role", "--disaggregation-mode"];

fn label_of(words: &[String]) -> String {
    let after = |option: &str| {
        let at = words.iter().position(|word| word == option)?;
        words.get(at + 1)
    };
    let program = words.first().map(String::as_str).unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    // What it is told to do first, such as `innkeeper worker`; of Python, the module.
    let first = match after("-m") {
        Some(module) => module.clone(),
        None => {
            let told = words[1..]
                .iter()
                .find(|word| ["up", "gateway", "worker"].contains(&word.as_str()));
            told.cloned().unwrap_or_else(|| program.to_owned())
        }
    };
    let kinds = KINDS.iter().filter_map(|kind| after(kind));
    kinds.fold(first, |label, kind| format!("{label} {kind}"))
}

/// Memory in use and the most of it, in KiB; none of one that has ended.
fn memory_kib(pid: u32) -> [u64; 2] {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    ["VmRSS:", "VmHWM:"].map(|name| field(&status, name).unwrap_or_default())
}

/// A number of a `status` file.
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_called_what_it_does() {
        let label = |command: &str| {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            label_of(&words)
        };
        assert_eq!(
            label("/x/innkeeper --config f worker --role decode --name d-0"),
            "worker decode"
        );
        assert_eq!(label("/x/innkeeper up --processes"), "up");
        assert_eq!(label("/x/llama-server --model m"), "llama-server");
        assert_eq!(
            label("python -m dynamo.mocker --disaggregation-mode prefill"),
            "dynamo.mocker prefill"
        );
        assert_eq!(label(""), "");
    }

    #[test]
    fn what_this_process_uses_is_seen_and_grows() {
        let own = [std::process::id()];
        let before = Usage::of(&own);
        let started = std::time::Instant::now();
        loop {
            let used = Usage::of(&own) - &before;
            let threads: f64 = used.processes.values().flat_map(|one| one.threads.values()).sum();
            let memory: f64 = used.processes.values().map(|one| one.memory_mib).sum();
            assert!(memory > 0.1 && used.peak_mib() >= memory);
            if used.cpu_seconds() > 0.02 && threads > 0.0 {
                return;
            }
            assert!(started.elapsed().as_secs() < 20, "no time is used");
        }
    }
}
