//! What no engine on this machine can be faster than: bytes over the bandwidth of its memory, and operations over the peak of its cores.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// Larger than any cache here: what is read comes from memory.
const BYTES: usize = 512 << 20;
/// Copied in one go.
const COPIED_BYTES: usize = 256 << 20;
/// How often it is read.
const TIMES: usize = 7;

/// How fast this machine's memory is read by all its cores, in GB/s.
#[derive(Copy, Clone, Debug, Serialize, Deserialize)]
pub struct Bandwidth(f64);

impl Bandwidth {
    /// Measures it: the best of several times, of a sum over memory that lies in pages of the size the system gives.
    #[must_use]
    pub fn measure() -> Self {
        let numbers = vec![1u64; BYTES / size_of::<u64>()];
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let part = numbers.len().div_ceil(cores);
        let best = (0..TIMES).map(|_| {
            let started = Instant::now();
            let sum: u64 = std::thread::scope(|scope| {
                let parts: Vec<_> = numbers
                    .chunks(part)
                    .map(|part| {
                        scope.spawn(|| part.iter().fold(0u64, |sum, number| sum.wrapping_add(*number)))
                    })
                    .collect();
                parts.into_iter().filter_map(|part| part.join().ok()).sum()
            });
            // It must not be guessed.
            assert_eq!(std::hint::black_box(sum), numbers.len() as u64);
            BYTES as f64 / started.elapsed().as_secs_f64() / 1e9
        });
        Self(best.fold(0.0, f64::max))
    }
}

/// How many bytes a second one thread copies from memory to memory: the best of several times.
pub(super) fn copied_per_second() -> f64 {
    let from = vec![1u8; COPIED_BYTES];
    // Written before, so that no page of it is new.
    let mut to = vec![2u8; COPIED_BYTES];
    let best = (0..TIMES).map(|_| {
        let started = Instant::now();
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&to);
        COPIED_BYTES as f64 / started.elapsed().as_secs_f64()
    });
    best.fold(0.0, f64::max)
}

/// The limits of this machine.
#[derive(Clone, Debug)]
pub(super) struct Floor {
    /// Bytes a second that can be read from memory in small pages, and in large ones.
    pub(super) bandwidth: [f64; 2],
    /// Multiplications of 8-bit numbers a second, as the cores' manuals have it, and what is assumed for that.
    pub(super) products: Option<(f64, String)>,
}

impl Floor {
    /// Measures in processes of their own, of which the second is given large pages.
    pub(super) fn measure() -> Self {
        let own = std::env::current_exe().expect("this program has a file");
        let bandwidth = ["0", "1"].map(|large| {
            let said = Command::new(&own)
                .arg("floor")
                .env("GLIBC_TUNABLES", format!("glibc.malloc.hugetlb={large}"))
                .stdin(Stdio::null())
                .output()
                .expect("this program can be run");
            let said: Bandwidth = serde_json::from_slice(&said.stdout).expect("a bandwidth");
            said.0 * 1e9
        });
        Self {
            bandwidth,
            products: products(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        }
    }

    /// Steps a second, if each must read so many bytes.
    pub(super) fn steps_per_second(&self, bytes: f64) -> f64 {
        self.bandwidth.into_iter().fold(0.0, f64::max) / bytes
    }
}

/// What instructions there may be, and how many products of 8-bit numbers a core does with one in a cycle.
const INSTRUCTIONS: [(&str, &str, f64); 4] = [
    ("amx_int8", "AMX int8", 1_024.0),
    ("avx512_vnni", "AVX-512 VNNI, one a cycle", 64.0),
    ("avx_vnni", "AVX-VNNI, two a cycle", 64.0),
    ("avx2", "AVX2, two a cycle", 32.0),
];

/// Products a second of all cores at the frequency that they have now.
fn products(info: &str) -> Option<(f64, String)> {
    let field = |name: &str| {
        info.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then_some(value.trim())
        })
    };
    let flags: Vec<&str> = field("flags")?.split(' ').collect();
    let (_, name, a_cycle) = INSTRUCTIONS.iter().find(|(flag, ..)| flags.contains(flag))?;
    let mhz: f64 = field("cpu MHz")?.parse().ok()?;
    let cores = info.lines().filter(|line| line.starts_with("processor")).count();
    let cores = cores as f64;
    Some((
        a_cycle * mhz * 1e6 * cores,
        format!("{name}, {cores} cores at {mhz:.0} MHz"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_best_instructions() {
        let info = "processor\t: 0\ncpu MHz\t\t: 2500.000\nflags\t\t: fpu avx2 avx512_vnni\nprocessor\t: 1\n";
        let (products, assumed) = products(info).unwrap();
        assert_eq!(products, 64.0 * 2.5e9 * 2.0);
        assert_eq!(assumed, "AVX-512 VNNI, one a cycle, 2 cores at 2500 MHz");
        assert!(super::products("processor: 0\n").is_none());
    }
}
