//! llama.cpp's server, in the build that `integration-tests/bench/peers/llama` makes.

use std::path::Path;

use tempfile::TempDir;

use super::{Server, Size};
use crate::ports::free;
use crate::prepare;
use crate::process::Process;

pub(super) async fn start(size: Size, peers: &Path) -> Result<Server, String> {
    let home = peers.join("llama");
    let program = home.join("bin/llama-server");
    if !program.is_file() {
        return Err("not built: see integration-tests/bench/peers/llama".to_owned());
    }
    let version = std::fs::read_to_string(home.join("VERSION")).unwrap_or_default();
    let to = free();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    // Each of its slots has as much room as all; what it keeps of prompts beside them would only be memory here.
    let own = format!(
        "--parallel {} --ctx-size {} --threads {threads} --cache-ram 0 --no-webui",
        size.streams,
        size.streams * size.tokens.next_multiple_of(256),
    );
    let mut arguments = vec![
        "--model".to_owned(),
        prepare::model_file().display().to_string(),
        "--host".to_owned(),
        to.ip().to_string(),
        "--port".to_owned(),
        to.port().to_string(),
    ];
    arguments.extend(own.split(' ').map(str::to_owned));
    let folder = TempDir::with_prefix("innkeeper-peer").map_err(|error| error.to_string())?;
    let process = Process::start(&program, "llama-server", &arguments, folder.path());
    let settings = format!("{}, `llama-server {own}`", version.trim());
    let server = Server::theirs(to, "default", settings, vec![process], folder);
    server.ready("/health").await
}
