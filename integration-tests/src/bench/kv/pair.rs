//! Two processes between which blocks are moved.

use std::process::Stdio;
use std::time::Duration;

use tempfile::NamedTempFile;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::peer::{Kind, Transport};
use super::{Order, World};

/// Until a process has said what it must. Passing it means that it hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// A source that has published its blocks, and a reader that has room for them.
pub(super) struct Pair {
    source: Side,
    reader: Side,
}

/// One process. It ends with its standard input, or is killed when dropped.
struct Side {
    process: Child,
    told: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
    log: NamedTempFile,
}

impl Pair {
    pub(super) async fn start(
        world: &World,
        kind: Kind,
        transport: Transport,
        block_bytes: usize,
        blocks: usize,
    ) -> Result<Self, String> {
        let shape = [block_bytes.to_string(), blocks.to_string()];
        let start = |role: &str, more: Option<String>| {
            let mut arguments = vec![role.to_owned()];
            arguments.extend(shape.iter().cloned().chain(more));
            let command = kind.command(world, transport, &arguments)?;
            Side::start(&[&world.inside[..], &command].concat())
        };
        let mut source = start("source", None)?;
        let address = source.line().await?;
        Ok(Self {
            source,
            reader: start("reader", Some(address))?,
        })
    }

    /// Moves all blocks so often, and says how many seconds each move took.
    pub(super) async fn read(&mut self, order: Order, times: usize) -> Result<Vec<f64>, String> {
        let told = format!("{} {times}\n", order.name());
        let written = self.reader.told.write_all(told.as_bytes()).await;
        written.map_err(|error| error.to_string())?;
        let line = self.reader.line().await?;
        let seconds: Vec<f64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        if seconds.len() == times {
            Ok(seconds)
        } else {
            Err(format!("it said {line:?}, must be {times} numbers"))
        }
    }

    /// Both, as long as they run.
    pub(super) fn processes(&self) -> Vec<u32> {
        [&self.source, &self.reader]
            .into_iter()
            .filter_map(|side| side.process.id())
            .collect()
    }
}

impl Side {
    fn start(command: &[String]) -> Result<Self, String> {
        let log = NamedTempFile::with_prefix("innkeeper-mover").map_err(|error| error.to_string())?;
        let errors = log.reopen().map_err(|error| error.to_string())?;
        let mut process = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{}: {error}", command[0]))?;
        let (Some(told), Some(said)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("a process without pipes".to_owned());
        };
        Ok(Self {
            process,
            told,
            said: BufReader::new(said).lines(),
            log,
        })
    }

    /// What it says next; or what its log ends with.
    async fn line(&mut self) -> Result<String, String> {
        match timeout(PATIENCE, self.said.next_line()).await {
            Ok(Ok(Some(line))) => Ok(line),
            Ok(_) => Err(format!("it ended: {}", self.last_words())),
            Err(_) => Err(format!("silent for {} s", PATIENCE.as_secs())),
        }
    }

    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(self.log.path()).unwrap_or_default();
        let mut lines = log.lines().rev();
        // A panic of ours ends with a note on how to learn more.
        let last = lines.find(|line| !line.trim().is_empty() && !line.starts_with("note:"));
        last.unwrap_or("it said nothing").to_owned()
    }
}
