//! The other process: a side driven by lines on its standard input, which tells by lines that start with `@`.

use std::{
    env,
    fmt::Write as _,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, sync_channel},
    thread,
};

use kv::{BlockIndex, KvTransfer, ReadId, SourceAddress};
use rustix::process::{Pid, Signal, kill_process};

use crate::side::{HANG, Side};

const ROLE: &str = "KV_UCX_TEST_PEER";

/// The started process. Killed when dropped.
pub(crate) struct Peer {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    pub(crate) address: SourceAddress,
}

impl Peer {
    pub(crate) fn start(tls: &str, blocks: u32, block_bytes: usize) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args([
                "--exact",
                "peer::serve_as_the_other_process",
                "--nocapture",
                "--quiet",
            ])
            .env(ROLE, format!("{tls} {blocks} {block_bytes}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = sync_channel(1_024);
        // Ends with the child's output.
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some(at) = line.find('@') {
                    let _ = tell.send(line[at + 1..].to_owned());
                }
            }
        });
        let mut peer = Self {
            child,
            input,
            lines,
            address: SourceAddress(Vec::new()),
        };
        let address = peer.expect("address ");
        peer.address = SourceAddress(address.into_bytes());
        peer
    }

    /// The next line, which must start so; what follows.
    pub(crate) fn expect(&mut self, start: &str) -> String {
        let line = self
            .lines
            .recv_timeout(HANG)
            .unwrap_or_else(|_| panic!("the other process said no {start:?}"));
        line.strip_prefix(start)
            .unwrap_or_else(|| panic!("{line:?}, not {start:?}"))
            .to_owned()
    }

    fn tell(&mut self, command: &str, seq: u64, rest: &str) {
        writeln!(self.input, "{command} {seq} {rest}").unwrap();
    }

    pub(crate) fn offer(&mut self, seq: u64, blocks: &[BlockIndex]) {
        self.tell("offer", seq, &list(blocks));
        self.expect("offered");
    }

    /// Withdraws, and when its blocks are its own again overwrites them.
    pub(crate) fn withdraw_and_reuse(&mut self, seq: u64, blocks: &[BlockIndex]) {
        self.tell("reuse", seq, &list(blocks));
    }

    pub(crate) fn withdraw(&mut self, seq: u64) {
        self.withdraw_and_reuse(seq, &[]);
        self.expect("reused");
    }

    pub(crate) fn read(&mut self, source: &SourceAddress, seq: u64, into: &[BlockIndex]) {
        let address = String::from_utf8_lossy(&source.0).into_owned();
        self.tell("read", seq, &format!("{address} {}", list(into)));
        self.expect("reading");
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the other process has nothing open.
    pub(crate) fn settle(&mut self) {
        self.tell("settle", 0, "");
        self.expect("settled");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn list(blocks: &[BlockIndex]) -> String {
    let mut out = String::new();
    for block in blocks {
        write!(out, "{block} ").unwrap();
    }
    out
}

fn parse(words: &mut dyn Iterator<Item = &str>) -> Vec<BlockIndex> {
    words.map(|word| word.parse().unwrap()).collect()
}

/// UCX's sockets are not closed on exec: without this the other process would keep this one's alive.
#[allow(unsafe_code)]
fn close_inherited() {
    let names = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name());
    // Collected first, and looked at again: the folder's own descriptor is closed by then.
    let names: Vec<_> = names.collect();
    let open = |fd: &i32| *fd > 2 && std::fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_ok();
    for fd in names
        .iter()
        .filter_map(|name| name.to_string_lossy().parse().ok())
        .filter(open)
    {
        // SAFETY: nothing of this process uses a descriptor yet.
        unsafe { rustix::io::close(fd) };
    }
}

/// Not a test where it is run as one: the body of the process that [`Peer::start`] starts.
#[test]
fn serve_as_the_other_process() {
    let Ok(role) = env::var(ROLE) else { return };
    close_inherited();
    let mut role = role.split(' ');
    let tls = role.next().unwrap();
    let (blocks, bytes) = (
        role.next().unwrap().parse().unwrap(),
        role.next().unwrap().parse().unwrap(),
    );
    let side = Side::new(tls, blocks, bytes);
    println!(
        "@address {}",
        String::from_utf8(side.transfer.address().0).unwrap()
    );
    let mut last = ReadId(0);
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let mut words = line.split_whitespace();
        let (command, seq) = (words.next().unwrap(), words.next().unwrap().parse().unwrap());
        match command {
            "offer" => {
                let blocks = parse(&mut words);
                side.fill(seq, &blocks);
                side.offer(seq, &blocks);
                println!("@offered");
            }
            "reuse" => {
                side.withdraw(seq);
                side.withdrawn(seq);
                side.fill(seq + 1_000_000, &parse(&mut words));
                println!("@reused");
            }
            "read" => {
                let source = SourceAddress(words.next().unwrap().as_bytes().to_vec());
                last = side.start(&source, seq, 0, &parse(&mut words));
                println!("@reading");
            }
            "settle" => {
                side.settle();
                println!("@settled");
            }
            other => panic!("unknown command {other} after {last}"),
        }
    }
    std::process::exit(0);
}
