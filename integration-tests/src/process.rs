//! One process of a cluster: its log, its signals, its end.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, kill_process};
use tokio::time::{Instant, sleep};

/// What a process can be sent.
#[derive(Copy, Clone, Debug)]
pub enum Signal {
    /// SIGKILL.
    Kill,
    /// SIGSTOP.
    Stop,
    /// SIGCONT.
    Continue,
    /// SIGTERM.
    Terminate,
}

/// A process, killed when dropped. It also ends by itself when this one does, because its standard input is ours.
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    /// The test has killed it or seen its end.
    over: bool,
}

impl Process {
    /// Starts `program`; what it says goes to a file in `folder`.
    pub(crate) fn start(program: &Path, name: &str, arguments: &[String], folder: &Path) -> Self {
        let log = (0..)
            .map(|n| folder.join(format!("{name}.{n}.log")))
            .find(|path| !path.exists())
            .expect("one of infinitely many");
        let file = File::create(&log).expect("a log file");
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(file.try_clone().expect("a log file"))
            .stderr(file)
            .spawn()
            .unwrap_or_else(|error| panic!("{} cannot be started: {error}", program.display()));
        let name = name.to_owned();
        Self {
            name,
            child,
            log,
            over: false,
        }
    }

    /// Name, as in logs and views.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the system calls it.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// If the process has ended.
    pub fn signal(&mut self, signal: Signal) {
        use rustix::process::Signal as Os;
        let signal = match signal {
            Signal::Kill => Os::KILL,
            Signal::Stop => Os::STOP,
            Signal::Continue => Os::CONT,
            Signal::Terminate => Os::TERM,
        };
        let ended = self.child.try_wait().expect("our own child");
        assert!(ended.is_none(), "{} has ended: {ended:?}", self.name);
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("our own child, not waited for yet");
        self.over |= signal == Os::KILL;
    }

    /// Waits for the process's end.
    ///
    /// # Panics
    /// If it does not end within `limit`.
    pub async fn ended(&mut self, limit: Duration) -> ExitStatus {
        let give_up_at = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait().expect("our own child") {
                self.over = true;
                return status;
            }
            assert!(Instant::now() < give_up_at, "{} does not end", self.name);
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Whether the process has ended although nobody wanted that.
    pub fn is_lost(&mut self) -> bool {
        !self.over && !self.runs()
    }

    /// Whether the test has killed it or seen its end.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// All it has said.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// SIGTERM, for one that has children to end.
    pub(crate) fn end_in_order(&mut self, limit: Duration) {
        if !self.runs() {
            return;
        }
        let _ = kill_process(Pid::from_child(&self.child), rustix::process::Signal::TERM);
        let give_up_at = std::time::Instant::now() + limit;
        while self.runs() && std::time::Instant::now() < give_up_at {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(60)..];
            eprintln!("--- the last of {}'s log:\n{}", self.name, last.join("\n"));
        }
        // Both fail only for one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
