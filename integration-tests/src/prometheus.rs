//! Prometheus, which is not ours: `promtool` to judge what we write, and the server to read what we say.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::http::get;
use crate::ports::free;
use crate::prepare::target;
use crate::process::Process;

/// For Prometheus to start, or to see what is there.
const PATIENCE: Duration = Duration::from_secs(60);

/// The folder with `promtool` and `prometheus`: the system's, or Debian's package unpacked beside what cargo builds. Needs no root, but lists of
/// packages, which root can have fetched.
fn tools() -> &'static Path {
    static TOOLS: OnceLock<PathBuf> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let has_both = |folder: &PathBuf| {
            ["promtool", "prometheus"]
                .iter()
                .all(|name| folder.join(name).is_file())
        };
        if let Some(folder) = std::env::split_paths(&path).find(has_both) {
            return folder;
        }
        let folder = target().join("prometheus");
        let tools = folder.join("usr/bin");
        if !has_both(&tools) {
            unpack(&folder);
        }
        assert!(has_both(&tools), "Debian's package has no {}", tools.display());
        tools
    })
}

/// Fetches Debian's package and unpacks it to `folder`, all of it or nothing.
fn unpack(folder: &Path) {
    let work = TempDir::with_prefix("prometheus").expect("a folder");
    let download = || {
        let mut command = Command::new("apt-get");
        command.args(["download", "prometheus"]).current_dir(work.path());
        succeeds(&mut command)
    };
    if !download() {
        succeeds(Command::new("apt-get").arg("update"));
        assert!(
            download(),
            "Prometheus cannot be fetched: have `promtool` and `prometheus` in PATH (Debian, Ubuntu: apt-get install prometheus)"
        );
    }
    let files = std::fs::read_dir(work.path()).expect("a folder");
    let packages = files.map(|file| file.expect("a file").path());
    let package = packages
        .into_iter()
        .find(|path| path.extension().is_some_and(|end| end == "deb"));
    let package = package.expect("a package");
    let unpacked = folder.with_extension("partial");
    let _ = std::fs::remove_dir_all(&unpacked);
    assert!(succeeds(
        Command::new("dpkg-deb").arg("-x").arg(package).arg(&unpacked)
    ));
    let _ = std::fs::remove_dir_all(folder);
    std::fs::rename(unpacked, folder).expect("the unpacked package can be moved");
}

fn succeeds(command: &mut Command) -> bool {
    let output = command.stdin(Stdio::null()).output();
    matches!(output, Ok(output) if output.status.success())
}

/// Runs `promtool` with this on its standard input: whether it succeeds, and all that it says.
///
/// # Panics
/// If it cannot be had.
#[must_use]
pub fn promtool(arguments: &[&str], folder: &Path, input: &str) -> (bool, String) {
    let mut child = Command::new(tools().join("promtool"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // It may have seen enough.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("promtool ends");
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

/// A server that scrapes every second.
pub struct Prometheus {
    process: Process,
    address: SocketAddr,
    _folder: TempDir,
}

impl Prometheus {
    /// Starts one for these targets, with the rules in a file.
    ///
    /// # Panics
    /// If it does not become ready.
    pub async fn start(targets: &[SocketAddr], rules: &Path) -> Self {
        let folder = TempDir::with_prefix("prometheus").expect("a folder");
        let address = free();
        let targets: Vec<String> = targets.iter().map(|target| format!("\"{target}\"")).collect();
        let config = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}\n\
             rule_files: [\"{}\"]\n\
             scrape_configs:\n  - job_name: innkeeper\n    static_configs: [{{targets: [{}]}}]\n",
            rules.display(),
            targets.join(", ")
        );
        let file = folder.path().join("prometheus.yml");
        std::fs::write(&file, config).expect("a file");
        let arguments = [
            format!("--config.file={}", file.display()),
            format!("--storage.tsdb.path={}", folder.path().join("data").display()),
            format!("--web.listen-address={address}"),
            "--enable-feature=exemplar-storage".to_owned(),
        ];
        let program = tools().join("prometheus");
        let process = Process::start(&program, "prometheus", &arguments, folder.path());
        let mut server = Self {
            process,
            address,
            _folder: folder,
        };
        let started = Instant::now();
        while !matches!(get(server.address, "/-/ready").await, Ok(answer) if answer.status == 200) {
            assert!(
                !server.process.is_lost() && started.elapsed() < PATIENCE,
                "Prometheus does not start: {}",
                server.process.log()
            );
            sleep(Duration::from_millis(50)).await;
        }
        server
    }

    /// What it answers to `/api/v1/PATH` with these parameters.
    ///
    /// # Errors
    /// What it says is wrong.
    pub async fn ask(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Value, String> {
        let query: Vec<String> = parameters
            .iter()
            .map(|(key, value)| format!("{key}={}", escaped(value)))
            .collect();
        let answer = get(self.address, &format!("/api/v1/{path}?{}", query.join("&"))).await?;
        let text = answer.text().await?;
        let json: Value = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
        match json["status"].as_str() {
            Some("success") => Ok(json["data"].clone()),
            _ => Err(text),
        }
    }

    /// The series of a query now: labels and value.
    ///
    /// # Errors
    /// What it says is wrong.
    pub async fn query(&self, query: &str) -> Result<Vec<(Value, f64)>, String> {
        let data = self.ask("query", &[("query", query)]).await?;
        let series = data["result"].as_array().cloned().unwrap_or_default();
        let parsed = series.iter().map(|one| {
            let value = one["value"][1].as_str().and_then(|value| value.parse().ok());
            (one["metric"].clone(), value.unwrap_or(f64::NAN))
        });
        Ok(parsed.collect())
    }

    /// Names of the alerts that fire, with their labels.
    ///
    /// # Panics
    /// If it does not answer.
    pub async fn firing(&self) -> Vec<Value> {
        let data = self.ask("alerts", &[]).await.expect("alerts");
        let alerts = data["alerts"].as_array().cloned().unwrap_or_default();
        alerts
            .into_iter()
            .filter(|alert| alert["state"] == "firing")
            .collect()
    }

    /// Waits until a query gives something.
    ///
    /// # Panics
    /// If it does not.
    pub async fn until(&self, query: &str) -> Vec<(Value, f64)> {
        let started = Instant::now();
        loop {
            let found = self
                .query(query)
                .await
                .unwrap_or_else(|why| panic!("{query}: {why}"));
            if !found.is_empty() {
                return found;
            }
            assert!(started.elapsed() < PATIENCE, "it never came to this: {query}");
            sleep(Duration::from_millis(200)).await;
        }
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' => escaped.push(char::from(byte)),
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}
