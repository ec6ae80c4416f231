//! The command line. Flags are shorthands for configuration keys; whatever has no flag of its own can be given with `--set`.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::{Args, Parser, Subcommand};

use crate::config::{Config, Setting, WorkerRole};
use crate::flags::{asked_address, length_ms, outcome, phase, reason};

/// Innkeeper serves large language models: prefill and decode apart, and no request without an owner.
#[derive(Debug, Parser)]
#[command(name = "innkeeper", version)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Configuration file (TOML).
    #[arg(long, global = true, value_name = "FILE", env = "INNKEEPER_CONFIG")]
    config: Option<PathBuf>,
    /// Any configuration key, such as `--set worker.slots=8`; may be repeated.
    #[arg(long = "set", global = true, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Log filter, such as `debug` or `info,runtime=debug`.
    #[arg(long, global = true, value_name = "FILTER")]
    log: Option<String>,
    /// Stop when standard input is closed: how the processes of `up --processes` end with it.
    #[arg(long, global = true, hide = true)]
    stop_with_stdin: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs a whole cluster on this machine.
    Up(UpArgs),
    /// Runs a gateway: speaks HTTP to clients and owns their requests.
    Gateway(GatewayArgs),
    /// Runs a worker.
    Worker(WorkerArgs),
    /// Talks to a cluster over HTTP/3.
    Chat(ChatArgs),
    /// Lists the rooms of a gateway, open or ended lately: where each is, what it waits for, its deadline, its blocks; or how it ended.
    Rooms(RoomsArgs),
    /// Tells all of a room, open or ended lately: its history, what it waits for, who holds its blocks, what ends it and when.
    Explain(ExplainArgs),
    /// Keeps new rooms from a worker, for all gateways; what is there finishes. Says what is still there, and with --wait waits for it.
    Drain(DrainArgs),
    /// Lets a worker that was drained take new rooms again.
    Undrain(UndrainArgs),
    /// Gives a worker another role while it runs: it drains, leaves, and comes back in the new one with its weights still loaded.
    Role(RoleArgs),
    /// Shows a cluster live: rates, latencies, workers, pools, the oldest rooms.
    Top(TopArgs),
    /// Says what this machine has: cores, GPU, UCX, model cache, ports.
    Doctor,
    /// Prints the effective configuration.
    Config,
    /// Makes authorities and certificates for a cluster of several machines.
    Certs(CertsArgs),
    /// Makes a key for a client: its entry for the file `api.keys` on standard output, the key itself on standard error.
    Key {
        /// Whose it is.
        name: String,
    },
    /// Does nothing for so long: for who may start a program and has no shell to wait in.
    #[command(hide = true)]
    Wait {
        #[arg(value_name = "TIME", value_parser = length_ms)]
        ms: u64,
    },
}

/// Certificates.
#[derive(Debug, Args)]
pub(crate) struct CertsArgs {
    /// Where they are kept, and the authorities; whoever gives the same folder again gets new certificates of the same authorities.
    #[arg(long, value_name = "FOLDER", default_value = "innkeeper-certs")]
    pub(crate) folder: PathBuf,
    /// A name or address by which clients reach the gateways; may be repeated.
    #[arg(long = "for", value_name = "HOST", default_value = "localhost")]
    pub(crate) hosts: Vec<String>,
    /// For how many days clients' certificate is good. (Those of nodes have no end: replace them when you like.)
    #[arg(long, value_name = "N", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=3_650))]
    pub(crate) days: u32,
    /// Makes one more, `mesh-worker`, for workers whose role is changed while they run: it is good for every role of a worker.
    #[arg(long)]
    pub(crate) any_role: bool,
    /// Prints them as Secrets, for `kubectl apply -f -`.
    #[arg(long)]
    pub(crate) kubernetes: bool,
}

/// A whole cluster.
#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Gateway and workers as processes of their own, with UCX between the workers.
    #[arg(long)]
    pub(crate) processes: bool,
    /// Prefill workers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) prefill: u8,
    /// Decode workers.
    #[arg(long, value_name = "M", default_value_t = 1)]
    pub(crate) decode: u8,
    /// Workers that do both.
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub(crate) mixed: u8,
    #[command(flatten)]
    model: ModelArg,
    #[command(flatten)]
    doors: DoorArgs,
}

/// A gateway.
#[derive(Debug, Args)]
pub(crate) struct GatewayArgs {
    #[command(flatten)]
    model: ModelArg,
    #[command(flatten)]
    doors: DoorArgs,
}

/// A worker.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// What it does.
    #[arg(long, value_enum)]
    role: Option<WorkerRole>,
    /// A gateway to dial (`host:port`); may be repeated. A name may stand for several.
    #[arg(long = "gateway", value_name = "ADDR")]
    gateways: Vec<String>,
    /// Name in logs and views.
    #[arg(long)]
    name: Option<String>,
    /// Address of its admin listener.
    #[arg(long, value_name = "ADDR")]
    admin: Option<String>,
    #[command(flatten)]
    model: ModelArg,
}

/// A conversation.
#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    /// Address of the gateway's HTTPS and HTTP/3 door.
    #[arg(long, value_name = "ADDR")]
    pub(crate) server: Option<String>,
    /// Certificate (PEM) to trust; the development CA when not given.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Model to ask for; the server's first when not given.
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Most tokens of an answer.
    #[arg(long, default_value_t = 512)]
    pub(crate) max_tokens: u32,
    /// How freely tokens are chosen: 0 always takes the likeliest. Small models ramble when it is high.
    #[arg(long, default_value_t = 0.2)]
    pub(crate) temperature: f32,
    /// One message instead of a conversation.
    pub(crate) message: Vec<String>,
}

/// A listing of rooms.
#[derive(Debug, Args)]
pub(crate) struct RoomsArgs {
    /// Address of a gateway's admin listener, such as `127.0.0.1:9090`.
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin: Option<String>,
    /// Again every second, until Ctrl-C.
    #[arg(long, conflicts_with = "json")]
    pub(crate) watch: bool,
    /// Rooms that ended lately, the latest first, and not those that are open.
    #[arg(long)]
    pub(crate) ended: bool,
    /// Only rooms in this phase; with `--ended`, rooms that were in it when their outcome was fixed.
    #[arg(long, value_name = "PHASE", value_parser = phase)]
    pub(crate) phase: Option<String>,
    /// Only rooms that arrived at least so long ago, such as `500ms`, `10s` or `2m`; with `--ended`, rooms that lasted so long.
    #[arg(long, value_name = "TIME", value_parser = length_ms)]
    pub(crate) older_than: Option<u64>,
    /// Only rooms of this worker: that wait for it, for which it may hold blocks, or that had it in an earlier attempt.
    #[arg(long, value_name = "NAME")]
    pub(crate) worker: Option<String>,
    /// Only rooms with this outcome.
    #[arg(long, value_name = "OUTCOME", value_parser = outcome, requires = "ended")]
    pub(crate) outcome: Option<String>,
    /// Only rooms whose outcome has this reason, such as `client_gone`.
    #[arg(long, value_name = "REASON", value_parser = reason, requires = "ended")]
    pub(crate) reason: Option<String>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// One room, or those of one request.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A room (`66179c5f147a751e-2`, or its number alone), a request id (the answer's `x-request-id`), or a trace id.
    #[arg(value_name = "ROOM|REQUEST-ID|TRACE")]
    pub(crate) what: String,
    /// Address of a gateway's admin listener.
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin: Option<String>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A worker that is drained.
#[derive(Debug, Args)]
pub(crate) struct DrainArgs {
    /// Its name.
    pub(crate) worker: String,
    /// How long to wait until nothing is left there, such as `30s`; it is an error if something is then.
    #[arg(long, value_name = "TIME", value_parser = length_ms)]
    pub(crate) wait: Option<u64>,
    /// Address of the admin listener of a gateway that it is linked with.
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin: Option<String>,
}

/// A worker that takes rooms again.
#[derive(Debug, Args)]
pub(crate) struct UndrainArgs {
    /// Its name.
    pub(crate) worker: String,
    /// Address of the admin listener of a gateway that it is linked with.
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin: Option<String>,
}

/// A worker that gets another role.
#[derive(Debug, Args)]
pub(crate) struct RoleArgs {
    /// Its name.
    pub(crate) worker: String,
    /// What it is to do. Its certificate must name the role.
    #[arg(value_enum)]
    pub(crate) role: WorkerRole,
    /// How long what is there may take, such as `30s`; what is left then goes on elsewhere.
    #[arg(long, value_name = "TIME", value_parser = length_ms, default_value = "25s")]
    pub(crate) wait: u64,
    /// Address of the admin listener of a gateway that it is linked with.
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin: Option<String>,
}

/// A live view.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Address of a gateway's admin listener.
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin: Option<String>,
}

#[derive(Debug, Args)]
struct ModelArg {
    /// `default`, a GGUF file, or a Hugging Face repository id.
    #[arg(long = "model", value_name = "MODEL")]
    source: Option<String>,
}

#[derive(Debug, Args)]
struct DoorArgs {
    /// Plain HTTP address.
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
    /// HTTPS and HTTP/3 address.
    #[arg(long, value_name = "ADDR")]
    https: Option<String>,
    /// Admin address.
    #[arg(long, value_name = "ADDR")]
    admin: Option<String>,
    /// Where to await workers.
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
}

impl Cli {
    /// The effective configuration: file, environment, flags.
    pub(crate) fn load_config(&self) -> Result<Config> {
        Config::load(self.global.config.as_deref(), self.settings()?)
    }

    /// Whether the process ends when its standard input does.
    pub(crate) fn stops_with_stdin(&self) -> bool {
        self.global.stop_with_stdin
    }

    /// What flags say about configuration keys; flags of their own win over `--set`.
    fn settings(&self) -> Result<Vec<Setting>> {
        let sets = self.global.set.iter().map(|pair| Setting::set(pair));
        let mut settings: Vec<Setting> = sets.collect::<Result<_>>()?;
        let mut flag = |flag: &str, key: &str, value: Option<&String>| {
            settings.extend(value.map(|value| Setting::flag(flag, key, value.clone().into())));
        };
        flag("--log", "log.filter", self.global.log.as_ref());
        match &self.command {
            Command::Up(UpArgs { model, doors, .. }) | Command::Gateway(GatewayArgs { model, doors }) => {
                flag("--model", "model.source", model.source.as_ref());
                flag("--http", "api.http", doors.http.as_ref());
                flag("--https", "api.https", doors.https.as_ref());
                flag("--admin", "admin.listen", doors.admin.as_ref());
                flag("--listen", "mesh.listen", doors.listen.as_ref());
            }
            Command::Worker(worker) => {
                let role = worker.role.map(|role| format!("{role:?}").to_lowercase());
                flag("--role", "worker.role", role.as_ref());
                flag("--name", "node.name", worker.name.as_ref());
                flag("--admin", "admin.worker", worker.admin.as_ref());
                flag("--model", "model.source", worker.model.source.as_ref());
                if !worker.gateways.is_empty() {
                    let gateways = worker.gateways.clone();
                    settings.push(Setting::flag("--gateway", "mesh.gateways", gateways.into()));
                }
            }
            Command::Rooms(RoomsArgs { admin, .. })
            | Command::Explain(ExplainArgs { admin, .. })
            | Command::Drain(DrainArgs { admin, .. })
            | Command::Undrain(UndrainArgs { admin, .. })
            | Command::Role(RoleArgs { admin, .. })
            | Command::Top(TopArgs { admin }) => {
                let admin = admin.as_deref().map(asked_address).transpose()?;
                let admin = admin.map(|admin| admin.to_string());
                flag("--admin", "admin.listen", admin.as_ref());
            }
            Command::Chat(chat) => flag("--server", "api.https", chat.server.as_ref()),
            Command::Doctor
            | Command::Config
            | Command::Certs(_)
            | Command::Key { .. }
            | Command::Wait { .. } => {}
        }
        Ok(settings)
    }
}

impl UpArgs {
    /// Whether a request could be served by these workers.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(
            self.mixed > 0 || (self.prefill > 0 && self.decode > 0),
            "--prefill {} --decode {} --mixed {} could serve nothing: give a prefill and a decode worker, or a mixed one",
            self.prefill,
            self.decode,
            self.mixed
        );
        Ok(())
    }

    /// How many workers of which role.
    pub(crate) fn workers(&self) -> [(WorkerRole, u8); 3] {
        [
            (WorkerRole::Prefill, self.prefill),
            (WorkerRole::Decode, self.decode),
            (WorkerRole::Mixed, self.mixed),
        ]
    }
}
