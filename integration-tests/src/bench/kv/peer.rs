//! Who can move blocks, and how their processes are told where.

use std::path::Path;

use clap::ValueEnum;
use kv_ucx::Ucx;

use super::World;
use crate::prepare;

/// What carries the bytes.
#[derive(Copy, Clone, Eq, PartialEq, Debug, ValueEnum)]
pub enum Transport {
    /// tcp over loopback.
    Tcp,
    /// Shared memory.
    Shm,
}

impl Transport {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Shm => "shared memory",
        }
    }

    /// `UCX_TLS`: what ours takes on loopback, or tcp alone.
    pub(super) fn tls(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Shm => "tcp,posix,sysv,cma,self",
        }
    }
}

/// Which UCX ours loads.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(super) enum Which {
    /// The one that `ucx_perftest` has.
    Theirs,
    /// The one that the program takes where nobody names one.
    Own,
}

/// Who moves blocks.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(super) enum Kind {
    Ours(Which),
    /// UCX's own benchmark; whether a peer's death has to be noticed, which decides what carries the bytes.
    Perftest {
        notice: bool,
    },
    Nixl,
    Mooncake,
}

impl Kind {
    /// Who can be measured over it.
    pub(super) fn of(transport: Transport) -> &'static [Self] {
        const TCP: [Kind; 5] = [
            Kind::Ours(Which::Own),
            Kind::Ours(Which::Theirs),
            Kind::Perftest { notice: true },
            Kind::Nixl,
            Kind::Mooncake,
        ];
        const SHM: [Kind; 5] = [
            Kind::Ours(Which::Own),
            Kind::Ours(Which::Theirs),
            Kind::Perftest { notice: true },
            Kind::Perftest { notice: false },
            Kind::Nixl,
        ];
        match transport {
            Transport::Tcp => &TCP,
            Transport::Shm => &SHM,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ours(Which::Own) => "innkeeper",
            Self::Ours(Which::Theirs) => "innkeeper with ucx_perftest's UCX",
            Self::Perftest { notice: true } => "ucx_perftest",
            Self::Perftest { notice: false } => "ucx_perftest, deaths not noticed",
            Self::Nixl => "NIXL",
            Self::Mooncake => "Mooncake",
        }
    }

    /// Where the script that installs it puts it, of those that are not ours.
    fn folder(self) -> &'static str {
        match self {
            Self::Ours(_) | Self::Perftest { .. } => "ucx",
            Self::Nixl => "nixl",
            Self::Mooncake => "mooncake",
        }
    }

    /// Its version, or what it lacks.
    pub(super) fn version(self, world: &World) -> Result<String, String> {
        if let Self::Ours(Which::Own) = self {
            return world.own_version.clone();
        }
        let folder = world.peers.join(self.folder());
        let version = std::fs::read_to_string(folder.join("VERSION"));
        version.map(|version| version.trim().to_owned()).map_err(|_| {
            format!(
                "not installed: see integration-tests/bench/peers/{}",
                self.folder()
            )
        })
    }

    /// The command of one of its two processes, `role` and what follows it; with `NAME=VALUE` first.
    pub(super) fn command(
        self,
        world: &World,
        transport: Transport,
        arguments: &[String],
    ) -> Result<Vec<String>, String> {
        self.version(world)?;
        let folder = world.peers.join(self.folder());
        let mut command = environment(transport);
        match self {
            Self::Ours(which) => {
                let library = match which {
                    Which::Own => prepare::ucx_cache(),
                    Which::Theirs => folder.join("lib/libucp.so.0"),
                };
                if which == Which::Theirs {
                    command.push(format!("LD_LIBRARY_PATH={}", folder.join("lib").display()));
                }
                let own = std::env::current_exe().map_err(|error| error.to_string())?;
                command.extend([text(&own), "move".to_owned(), text(&library)]);
            }
            Self::Perftest { .. } => {
                // As ours sets them for itself; NIXL has UCX's defaults.
                command.extend(["UCX_TCP_TX_SEG_SIZE=256k", "UCX_TCP_RX_SEG_SIZE=256k"].map(str::to_owned));
                command.push(format!("LD_LIBRARY_PATH={}", folder.join("lib").display()));
                command.push(text(&folder.join("usr/bin/ucx_perftest")));
            }
            Self::Nixl | Self::Mooncake => {
                command.push(format!("LD_LIBRARY_PATH={}", folder.join("lib").display()));
                let movers = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/peers/movers.py");
                let python = folder.join("venv/bin/python");
                command.extend([text(&python), text(&movers), self.folder().to_owned()]);
            }
        }
        command.extend_from_slice(arguments);
        Ok(command)
    }
}

/// What UCX is told by the environment, the same for everyone.
fn environment(transport: Transport) -> Vec<String> {
    vec![
        "env".to_owned(),
        format!("UCX_TLS={}", transport.tls()),
        "UCX_NET_DEVICES=lo".to_owned(),
        // As ours sets them for itself.
        "UCX_POSIX_ERROR_HANDLING=y".to_owned(),
        "UCX_SYSV_ERROR_HANDLING=y".to_owned(),
        "UCX_KEEPALIVE_INTERVAL=1s".to_owned(),
        "UCX_TCP_USER_TIMEOUT=3s".to_owned(),
        "UCX_WARN_UNUSED_ENV_VARS=n".to_owned(),
        "PYTHONDONTWRITEBYTECODE=1".to_owned(),
        "RUST_BACKTRACE=0".to_owned(),
    ]
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// The version of the UCX that our program takes where nobody names another.
pub(super) fn own_version() -> Result<String, String> {
    let ucx = Ucx::load(None, Some(&prepare::ucx_cache())).map_err(|error| error.to_string())?;
    Ok(format!("UCX {}", ucx.version()))
}
