//! A collector of traces that is not ours: `rotel`, a program out of a Python package. It takes OTLP over gRPC and over HTTP, and writes down
//! all that it was sent.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pypi::{Options, Package, PypiError};
use tempfile::TempDir;

use crate::ports::free;
use crate::process::Process;

/// Its package; the wheel is that of CPython 3.11, which pip takes there.
const WHEEL: Package<'_> = Package {
    requirement: "rotel==0.0.1a15",
    wheel_bytes: 10_349_391,
    wheel_sha256: "2f4117e58410c933e0dc042a268ef738dab2e3a5d63b5831209acdac2a6ddcb7",
};

/// A collector that runs.
pub struct Collector {
    process: Process,
    grpc: SocketAddr,
    http: SocketAddr,
    _folder: TempDir,
}

/// A span as the collector understood it.
#[derive(Clone, Debug, Default)]
pub struct SpanSeen {
    /// Attributes of who sent it.
    pub resource: BTreeMap<String, String>,
    /// Its trace.
    pub trace: String,
    /// Its id.
    pub id: String,
    /// Its parent's id; empty if it has none.
    pub parent: String,
    /// Its name.
    pub name: String,
    /// Its kind, such as `SPAN_KIND_SERVER`.
    pub kind: String,
    /// Nanoseconds since 1970.
    pub start_ns: u64,
    /// Nanoseconds since 1970.
    pub end_ns: u64,
    /// `STATUS_CODE_ERROR`, if it failed.
    pub status: String,
    /// Its attributes; values as the collector writes them, such as `Int(2)` and `Str(decode)`.
    pub attributes: BTreeMap<String, String>,
    /// Names of its events and when they were, in nanoseconds since 1970.
    pub events: Vec<(String, u64)>,
    /// Spans it links to.
    pub links: Vec<String>,
}

impl Collector {
    /// Starts one, fetched on first use, that writes down all that it is sent.
    ///
    /// # Panics
    /// If it cannot be had.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&["--debug-log", "traces", "--debug-log-verbosity", "detailed"])
    }

    /// Starts one that takes traces and drops them.
    pub(crate) fn start_silent() -> Self {
        Self::start_with(&[])
    }

    fn start_with(more: &[&str]) -> Self {
        let program = program();
        let folder = TempDir::with_prefix("innkeeper-collector").expect("a folder");
        let (grpc, http) = (free(), free());
        let pid_file = folder.path().join("pid").display().to_string();
        let arguments = [
            "start",
            "--otlp-grpc-endpoint",
            &grpc.to_string(),
            "--otlp-http-endpoint",
            &http.to_string(),
            "--exporter",
            "blackhole",
            "--pid-file",
            &pid_file,
        ];
        let arguments: Vec<String> = arguments
            .iter()
            .chain(more)
            .map(|&word| word.to_owned())
            .collect();
        let process = Process::start(&program, "rotel", &arguments, folder.path());
        Self {
            process,
            grpc,
            http,
            _folder: folder,
        }
    }

    /// Where it takes OTLP over gRPC.
    #[must_use]
    pub fn grpc(&self) -> String {
        format!("http://{}", self.grpc)
    }

    /// Where it takes OTLP over HTTP.
    #[must_use]
    pub fn http(&self) -> String {
        format!("http://{}", self.http)
    }

    /// All spans it was sent so far.
    #[must_use]
    pub fn spans(&self) -> Vec<SpanSeen> {
        read(&self.process.log())
    }
}

/// Where it lies, once for all tests of this user.
fn program() -> PathBuf {
    let cache = dirs::cache_dir().expect("a cache folder").join("innkeeper/tests");
    let program = cache.join("rotel-0.0.1a15");
    let here = || program.is_file().then(|| program.clone());
    let keep = |unpacked: &Path| {
        let agent = unpacked.join("rotel/rotel-agent");
        let runs = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&agent, runs).expect("our own file");
        std::fs::rename(&agent, &program).expect("the same folder");
        Ok::<_, PypiError>(program.clone())
    };
    let options = Options::default();
    pypi::fetch(WHEEL, (&cache, "rotel"), &options, &mut |_, _| (), here, keep)
        .expect("the collector can be fetched")
}

/// In which list of a span a line is.
enum Within {
    Nothing,
    Resource,
    Attributes,
    Event,
    Link,
}

/// Reads what it writes: a line a field, below headings.
fn read(log: &str) -> Vec<SpanSeen> {
    let mut spans: Vec<SpanSeen> = Vec::new();
    let mut resource = BTreeMap::new();
    let mut within = Within::Nothing;
    for line in log.lines() {
        let line = line.trim();
        match line {
            "Resource attributes:" => {
                resource = BTreeMap::new();
                within = Within::Resource;
            }
            "Attributes:" => within = Within::Attributes,
            _ if line.starts_with("ScopeSpans #") => within = Within::Nothing,
            _ if line.starts_with("Span #") => {
                spans.push(SpanSeen {
                    resource: resource.clone(),
                    ..SpanSeen::default()
                });
                within = Within::Nothing;
            }
            _ => {
                if let Some(span) = spans.last_mut() {
                    field(span, line, &mut within);
                }
                if let (Within::Resource, Some((name, value))) = (&within, attribute(line)) {
                    resource.insert(name.to_owned(), value.to_owned());
                }
            }
        }
    }
    spans
}

fn field(span: &mut SpanSeen, line: &str, within: &mut Within) {
    if line.starts_with("SpanEvent #") {
        span.events.push((String::new(), 0));
        *within = Within::Event;
    } else if line.starts_with("SpanLink #") {
        *within = Within::Link;
    } else if let Some((name, value)) = attribute(line) {
        match within {
            Within::Attributes => {
                span.attributes.insert(name.to_owned(), value.to_owned());
            }
            Within::Event => {
                let Some((known, at)) = span.events.last_mut() else {
                    return;
                };
                match name {
                    "Name" => value.clone_into(known),
                    "Timestamp" => *at = number(value),
                    _ => {}
                }
            }
            Within::Link if name == "ID" => span.links.push(value.to_owned()),
            Within::Link | Within::Resource | Within::Nothing => {}
        }
    } else if let Some((name, value)) = line.split_once(':') {
        let value = value.trim();
        match name.trim() {
            "Trace ID" => value.clone_into(&mut span.trace),
            "Parent ID" => value.clone_into(&mut span.parent),
            "ID" => value.clone_into(&mut span.id),
            "Name" => value.clone_into(&mut span.name),
            "Kind" => value.clone_into(&mut span.kind),
            "Status code" => value.clone_into(&mut span.status),
            "Start time" => span.start_ns = number(value),
            "End time" => span.end_ns = number(value),
            _ => {}
        }
    }
}

fn attribute(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix("-> ")?.split_once(':')?;
    Some((name, value.trim()))
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}
