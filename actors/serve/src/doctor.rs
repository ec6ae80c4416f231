//! `innkeeper doctor`: what this machine has, and what is missing for what.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;

use anyhow::Result;
use cpu::Level;
use kv_ucx::Ucx;
use tokio::task::spawn_blocking;

use crate::config::Config;
use crate::paths;

/// Looks and prints. Finding nothing is not an error.
pub(crate) async fn run(config: &Config) -> Result<()> {
    let config = config.clone();
    let lines = spawn_blocking(move || lines(&config)).await??;
    for (what, found) in lines {
        println!("{what:<14} {found}");
    }
    Ok(())
}

fn lines(config: &Config) -> Result<Vec<(&'static str, String)>> {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let mut lines = vec![
        ("cores", cores.to_string()),
        (
            "instructions",
            format!("{:?} (of {:?})", Level::best(), Level::available()),
        ),
        ("gpu", gpu()),
        ("ucx", ucx(config)?),
        ("model cache", models(&paths::models(config)?)),
        ("certificates", certificates(&paths::certs(config)?)),
    ];
    lines.push(("http port", port(config.api.http, false)));
    lines.push(("https port", port(config.api.https, true)));
    lines.push(("mesh port", udp(config.mesh.listen)));
    lines.push(("admin port", port(config.admin.listen, false)));
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

fn certificates(folder: &Path) -> String {
    match folder.join("dev-ca.pem").exists() || folder.join("ca.crt").exists() {
        true => folder.display().to_string(),
        false => format!(
            "{} holds none yet: the first `up` makes a development authority",
            folder.display()
        ),
    }
}

fn port(address: SocketAddr, with_udp: bool) -> String {
    match TcpListener::bind(address) {
        Ok(_) if with_udp => udp(address),
        Ok(_) => format!("{address} is free"),
        Err(error) => format!("{address} cannot be had: {error}"),
    }
}

fn udp(address: SocketAddr) -> String {
    match UdpSocket::bind(address) {
        Ok(_) => format!("{address} is free"),
        Err(error) => format!("{address} (UDP) cannot be had: {error}"),
    }
}
