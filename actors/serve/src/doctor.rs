//! `innkeeper doctor`: what this machine has, and what is missing for what.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;
use cpu::Level;
use kv_ucx::Ucx;
use tokio::task::spawn_blocking;

use crate::admin::RoomRow;
use crate::config::Config;
use crate::ports::{self, Port};
use crate::{http, memory, output, paths};

/// Looks and prints. Finding nothing is not an error.
pub(crate) async fn run(config: &Config) -> Result<()> {
    let running = running(config).await;
    let config = config.clone();
    // Bounded: nothing in there waits for others.
    let lines = spawn_blocking(move || lines(&config, running)).await??;
    let mut text = String::new();
    for (what, found) in lines {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{what:<14} {found}");
    }
    Ok(output::print(&text)?)
}

/// Where an Innkeeper answers that listens as configured, if one does.
async fn running(config: &Config) -> Option<SocketAddr> {
    let clients = async {
        let asked = http::get(config.api.http, "/health/live").await;
        matches!(asked, Ok((200, _))).then_some(config.api.http)
    };
    let operators = async {
        let (status, body) = http::Admin::of(config).ok()?.get("/rooms").await.ok()?;
        let rooms = serde_json::from_slice::<Vec<RoomRow>>(&body);
        (status == 200 && rooms.is_ok()).then_some(config.admin.listen)
    };
    let (clients, operators) = tokio::join!(clients, operators);
    operators.or(clients)
}

fn lines(config: &Config, running: Option<SocketAddr>) -> Result<Vec<(&'static str, String)>> {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let memory = memory::total_mib().map_or_else(|| "unknown".to_owned(), |mib| format!("{mib} MiB"));
    let mut lines = vec![
        ("cores", cores.to_string()),
        ("memory", memory),
        (
            "instructions",
            format!("{:?} (of {:?})", Level::best(), Level::available()),
        ),
        ("gpu", gpu()),
        ("ucx", ucx(config)?),
        ("model cache", models(&paths::models(config)?)),
        ("certificates", certificates(config)?),
    ];
    lines.extend(
        ports::all(config)
            .iter()
            .map(|found| (found.key, port(found, running))),
    );
    Ok(lines)
}

fn gpu() -> String {
    match std::fs::read_to_string("/proc/driver/nvidia/version") {
        Ok(version) => format!(
            "NVIDIA driver found ({}); this build computes on the CPU",
            version.lines().next().unwrap_or("")
        ),
        Err(_) => "none: the CPU computes".to_owned(),
    }
}

fn ucx(config: &Config) -> Result<String> {
    let cache = paths::ucx(config)?;
    let given = (!config.ucx.library.is_empty()).then(|| Path::new(&config.ucx.library));
    let tls = if config.ucx.tls.is_empty() {
        "chosen by UCX"
    } else {
        &config.ucx.tls
    };
    Ok(match Ucx::load(given, Some(&cache)) {
        Ok(ucx) => format!("{} at {}; transports: {tls}", ucx.version(), ucx.path().display()),
        Err(error) => format!(
            "none ({error}): prefill and decode can share a process (`up`); `up --processes` will try to fetch it into {}",
            cache.display()
        ),
    })
}

fn models(folder: &Path) -> String {
    let found: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            entry
                .path()
                .extension()
                .is_some_and(|extension| extension == "gguf")
        })
        .map(|entry| {
            let bytes = entry.metadata().map_or(0, |meta| meta.len());
            format!("{} ({} MB)", entry.file_name().display(), bytes / 1_000_000)
        })
        .collect();
    match found.as_slice() {
        [] => format!(
            "{} holds none yet: the first `up` fetches 98 MB",
            folder.display()
        ),
        found => format!("{}: {}", folder.display(), found.join(", ")),
    }
}

fn certificates(config: &Config) -> Result<String> {
    let folder = paths::dev_ca(config)?;
    let made = match folder.join("dev-ca.pem").exists() {
        true => folder.display().to_string(),
        false => format!(
            "{} holds none yet: the first `up` makes a development authority",
            folder.display()
        ),
    };
    Ok(match config.mesh.certs.as_str() {
        "" => made,
        given => format!("{given} for links between nodes; {made}"),
    })
}

/// A port that is taken is mostly our own.
fn port(port: &Port, running: Option<SocketAddr>) -> String {
    let address = port.address;
    match (port.probe(), running) {
        (Ok(()), _) => format!("{address} is free"),
        (Err(error), Some(own)) => {
            format!("{address} is taken, most likely by the Innkeeper that answers on {own} ({error})")
        }
        (Err(error), None) => format!("{address} cannot be had: {error}; no Innkeeper answers there"),
    }
}
