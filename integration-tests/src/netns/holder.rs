//! A process that holds a network namespace, and what is done inside it.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
#[cfg(test)]
use std::time::Instant;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Interfaces are found below `/sys` too, which shows those of the namespace that it was mounted in.
const HOLD: &str = "mount -t sysfs sysfs /sys && echo ready && exec cat >/dev/null";
const READY: &[u8; 6] = b"ready\n";

/// Of a command in the namespace.
const LIMIT: Duration = Duration::from_secs(10);

/// The process. It ends when this is dropped, or with this program, as its standard input is ours.
pub(super) struct Holder {
    child: Child,
}

impl Holder {
    pub(super) fn start() -> Result<Self, String> {
        let child = Command::new("unshare")
            .args(["--net", "--mount", "--", "sh", "-c", HOLD])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("unshare: {error}"))?;
        let mut holder = Self { child };
        holder.settle()?;
        Ok(holder)
    }

    /// Waits until the namespace is there.
    fn settle(&mut self) -> Result<(), String> {
        let mut said = [0; READY.len()];
        let out = self.child.stdout.take().ok_or("unshare has no output")?;
        // It ends with the process, if that says nothing.
        let ready = std::io::BufReader::new(out).read_exact(&mut said);
        if ready.is_ok() && said == *READY {
            return Ok(());
        }
        let mut why = String::new();
        if let Some(from) = self.child.stderr.as_mut() {
            from.read_to_string(&mut why).map_err(|error| error.to_string())?;
        }
        Err(format!("unshare: {}", why.trim()))
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What to put in front of a command so that it runs here.
    pub(super) fn prefix(&self) -> Vec<String> {
        let of = |kind: &str, file: &str| format!("--{kind}=/proc/{}/ns/{file}", self.pid());
        vec![
            "nsenter".to_owned(),
            of("net", "net"),
            of("mount", "mnt"),
            "--".to_owned(),
        ]
    }

    /// Runs commands of `ip`, one a line.
    pub(super) fn ip(&self, lines: &str) -> Result<(), String> {
        let prefix = self.prefix();
        let mut child = Command::new(&prefix[0])
            .args(&prefix[1..])
            .args(["ip", "-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("nsenter: {error}"))?;
        if let Some(mut to) = child.stdin.take() {
            to.write_all(lines.as_bytes())
                .map_err(|error| format!("ip: {error}"))?;
        }
        let output = child.wait_with_output().map_err(|error| format!("ip: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("ip: {}", String::from_utf8_lossy(&output.stderr).trim())),
        }
    }

    /// Runs `work` on a thread of its own that is in the namespace: sockets that it makes are there.
    pub(super) fn run(&self, work: impl FnOnce() + Send + 'static) -> Result<thread::JoinHandle<()>, String> {
        let path = format!("/proc/{}/ns/net", self.pid());
        let namespace = std::fs::File::open(&path).map_err(|error| format!("{path}: {error}"))?;
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let thread = thread::spawn(move || {
            let moved = move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network));
            let is_there = moved.is_ok();
            let _ = tell.send(moved.map_err(|error| format!("setns: {error}")));
            if is_there {
                work();
            }
        });
        told.recv_timeout(LIMIT)
            .map_err(|_| "setns says nothing".to_owned())??;
        Ok(thread)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // Both fail only for one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// For the tests: a server in the namespace that only counts.
#[cfg(test)]
pub(super) struct Counter(std::sync::Arc<std::sync::atomic::AtomicUsize>);

#[cfg(test)]
impl Holder {
    /// A server on this port of all addresses there. Its thread lasts as long as the tests.
    pub(super) fn listen(&self, port: u16) -> Result<Counter, String> {
        let count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = std::sync::Arc::clone(&count);
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        self.run(move || {
            let listener = std::net::TcpListener::bind(("0.0.0.0", port)).unwrap();
            tell.send(()).unwrap();
            for _accepted in listener.incoming() {
                counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
        })?;
        told.recv_timeout(LIMIT).map_err(|error| error.to_string())?;
        Ok(Counter(count))
    }
}

#[cfg(test)]
impl Counter {
    pub(super) fn accepted(&self) -> usize {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }

    pub(super) fn wait_for(&self, count: usize) {
        let started = Instant::now();
        while self.accepted() < count {
            assert!(started.elapsed() < LIMIT, "{} of {count}", self.accepted());
            thread::sleep(Duration::from_millis(2));
        }
    }
}
