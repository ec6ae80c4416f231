//! NVIDIA Dynamo's frontend with its KV router, before a prefill and a decode worker of its mocker, in the environment that
//! `integration-tests/bench/peers/dynamo` makes. They find each other by files.

use std::path::Path;

use tempfile::TempDir;

use super::{Server, Size};
use crate::ports::free;
use crate::process::Process;

/// What its processes are told by their environment: to stay on this machine, and to log nothing of each request, which would be charged to them.
const ENVIRONMENT: [&str; 6] = [
    "DYN_LOG=error",
    "DYN_DISCOVERY_BACKEND=file",
    "DYN_SELF_HOST_METADATA=0",
    "DYN_TCP_RPC_HOST=127.0.0.1",
    "DYN_EVENT_PLANE_HOST=127.0.0.1",
    "HF_HUB_OFFLINE=1",
];

pub(super) async fn start(size: Size, peers: &Path) -> Result<Server, String> {
    let home = peers.join("dynamo");
    let (python, model) = (home.join("venv/bin/python"), home.join("model"));
    if !python.is_file() || !model.is_dir() {
        return Err("not installed: see integration-tests/bench/peers/dynamo".to_owned());
    }
    let version = std::fs::read_to_string(home.join("VERSION")).unwrap_or_default();
    let folder = TempDir::with_prefix("innkeeper-peer").map_err(|error| error.to_string())?;
    let (to, rendezvous) = (free(), free().port());
    // 1,000,000 times as fast as an engine; more than so many sequences it refuses to batch.
    let engine = format!("--speedup-ratio 1000000 --max-num-seqs {}", size.streams.max(256));
    let mocker = |role: &str, more: &str| {
        format!(
            "dynamo.mocker --model-path {} --model-name mock --disaggregation-mode {role} {engine}{more}",
            model.display()
        )
    };
    let frontend = format!(
        "dynamo.frontend --http-host {} --http-port {} --router-mode kv",
        to.ip(),
        to.port()
    );
    let commands = [
        (
            "prefill",
            mocker("prefill", &format!(" --bootstrap-ports {rendezvous}")),
        ),
        ("decode", mocker("decode", "")),
        ("frontend", frontend.clone()),
    ];
    let processes = commands.iter().map(|(name, command)| {
        let mut arguments: Vec<String> = ENVIRONMENT.iter().map(|&set| set.to_owned()).collect();
        arguments.push(format!("DYN_FILE_KV={}", folder.path().join("found").display()));
        arguments.push(format!("TMPDIR={}", folder.path().display()));
        arguments.push(python.display().to_string());
        arguments.push("-m".to_owned());
        arguments.extend(command.split(' ').map(str::to_owned));
        Process::start(Path::new("/usr/bin/env"), name, &arguments, folder.path())
    });
    let processes = processes.collect();
    let settings = format!(
        "{}, mocker `{engine}`, frontend `--router-mode kv`, discovery by files",
        version.trim()
    );
    let server = Server::theirs(to, "mock", settings, processes, folder);
    server.ready("/health").await
}
