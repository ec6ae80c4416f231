//! The sections of the configuration, each with its safe defaults. An empty string means "not set, find it yourself".

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};

/// Who this process is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Node {
    /// Name of this node, of which a gateway links one; empty: role and process id.
    pub(crate) name: String,
}

/// What is served.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Model {
    /// `default`, a path of a GGUF file or of a folder, or a Hugging Face repository id.
    pub(crate) source: String,
    /// Name that clients use; empty: the model's own.
    pub(crate) name: String,
    /// Where fetched models and libraries are kept; empty: the user's cache folder.
    pub(crate) cache: String,
}

/// The clients' door.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Api {
    /// Plain HTTP/1.1 and HTTP/2.
    pub(crate) http: SocketAddr,
    /// HTTPS over TCP, and HTTP/3 over QUIC on the same port number.
    pub(crate) https: SocketAddr,
    /// Port at which clients find `https`, which is named to those who come over TCP; 0: that of `https`.
    pub(crate) public_port: u16,
    /// Certificate chain (PEM) for HTTPS and HTTP/3; empty: one signed by the development CA.
    pub(crate) cert: String,
    /// Its private key (PEM).
    pub(crate) key: String,
    /// Largest request body in bytes; more is answered with 413.
    pub(crate) max_body_bytes: usize,
    /// Requests that may be open at once; more are answered with 429.
    pub(crate) max_requests: usize,
    /// Largest `n`.
    pub(crate) max_n: u32,
    /// File of clients' keys; empty: whoever reaches the door is served.
    pub(crate) keys: String,
    /// Origins whose pages may ask in a browser, such as `https://chat.example.com`; `*`: all.
    pub(crate) cors: Vec<String>,
}

/// The operators' door.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Admin {
    /// A gateway's: `/rooms`, `/workers`, `/metrics`; never on the clients' listener.
    pub(crate) listen: SocketAddr,
    /// A worker's: `/stays`, `/health`, `/metrics`; port 0: any that is free, which the log names.
    pub(crate) worker: SocketAddr,
    /// File with the token that opens both; empty: they are open.
    pub(crate) token: String,
}

/// Links between nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Mesh {
    /// Where a gateway awaits workers.
    pub(crate) listen: SocketAddr,
    /// The gateways a worker dials: `host:port`; a name may stand for several.
    pub(crate) gateways: Vec<String>,
    /// Folder with `tls.crt`, `tls.key` and `ca.crt`; empty: the development CA in the cache folder.
    pub(crate) certs: String,
    /// Time between heartbeats.
    pub(crate) heartbeat_ms: u64,
    /// Silence after which a link is fenced and a worker drops the gateway's rooms. With the default a killed worker is known, and
    /// requests that need it are refused, within two seconds.
    pub(crate) lease_ms: u64,
    /// Kinds of frames that this end loses, such as `close`: a fault switch, which only test builds have.
    #[cfg(feature = "faults")]
    pub(crate) lose: Vec<String>,
}

/// How long things may take and how many there may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Limits {
    /// Rooms that may wait for credit.
    pub(crate) queue_rooms: usize,
    /// Longest wait for credit.
    pub(crate) queue_ms: u64,
    /// Deadline of a request that names none.
    pub(crate) request_ms: u64,
    /// Longest wait for a decode worker's grant.
    pub(crate) reserve_ms: u64,
    /// Longest time without progress of a prefill.
    pub(crate) prefill_stall_ms: u64,
    /// Longest time of one pull.
    pub(crate) pull_ms: u64,
    /// Longest time between two tokens.
    pub(crate) decode_stall_ms: u64,
    /// Tokens of an answer that may be computed and not yet taken by its client; then the answer is paused.
    pub(crate) unread_tokens: u32,
    /// Attempts at a room that may fail by fault.
    pub(crate) attempts: u32,
    /// How long a process that was told to stop lets streams finish.
    pub(crate) shutdown_ms: u64,
}

/// What a worker does.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WorkerRole {
    /// Turns prompts into KV blocks.
    Prefill,
    /// Pulls KV blocks and generates.
    Decode,
    /// Both.
    Mixed,
}

/// What a worker computes on.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WorkerDevice {
    /// This machine's processors.
    Cpu,
    /// Nothing: answers are made up and take as long as [`Mock`] says, for trying out a cluster and what it costs beside its engines.
    Mock,
}

/// How a worker on processors computes. All workers of a gateway must agree.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WorkerNumerics {
    /// Activations are rounded to eight bits before they are multiplied with quantised weights.
    Fast,
    /// Everything in single precision.
    Exact,
}

/// A worker's device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Worker {
    /// What it does.
    pub(crate) role: WorkerRole,
    /// What it computes on.
    pub(crate) device: WorkerDevice,
    /// Sequences in the batch at once.
    pub(crate) slots: u32,
    /// Memory for the KV pool, in MiB.
    pub(crate) pool_mib: u64,
    /// Tokens a KV block; all workers must agree.
    pub(crate) block_tokens: usize,
    /// Most tokens of one step.
    pub(crate) step_tokens: usize,
    /// Most prompt tokens of one sequence in a step: an abort takes effect within one chunk.
    pub(crate) chunk_tokens: usize,
    /// Compute threads; 0: all cores.
    pub(crate) threads: usize,
    /// How it computes; all workers must agree.
    pub(crate) numerics: WorkerNumerics,
}

/// How long the steps of a mock device take: the sum of these.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Mock {
    /// For the step itself.
    pub(crate) step_us: u64,
    /// For each token of a prompt in it.
    pub(crate) prompt_token_us: u64,
    /// For each sequence in it that goes on by one token.
    pub(crate) answer_token_us: u64,
}

/// The KV transport between processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Ucx {
    /// Path of `libucp.so.0`; empty: the loader's, then the cache's.
    pub(crate) library: String,
    /// UCX's own list of transports (`tcp`, `shm`, `rc,cuda`); empty: UCX chooses.
    pub(crate) tls: String,
    /// UCX's own list of devices; empty: UCX chooses.
    pub(crate) net_devices: String,
    /// Address at which this worker's KV is read.
    pub(crate) bind: IpAddr,
    /// A read or send that makes no progress for this long is ended by force.
    pub(crate) no_progress_ms: u64,
}

/// How logs look.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Logs; they go to standard error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Log {
    /// `tracing` filter, such as `info` or `info,runtime=debug`.
    pub(crate) filter: String,
    /// Text or JSON.
    pub(crate) format: LogFormat,
}

/// How traces are sent.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TracingProtocol {
    /// OTLP over gRPC.
    Grpc,
    /// OTLP over HTTP, as protobuf.
    Http,
}

/// Traces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tracing {
    /// The collector: `http://HOST:PORT`; empty: no traces.
    pub(crate) endpoint: String,
    /// How it is spoken to.
    pub(crate) protocol: TracingProtocol,
    /// The share of all traces that is kept from the beginning, from 0 to 1.
    pub(crate) sample: f64,
    /// A trace whose first token took this long is kept in any case.
    pub(crate) slow_first_token_ms: u64,
    /// And so is one that took this long in all.
    pub(crate) slow_total_ms: u64,
    /// Where people look at traces, for links to them: `http://HOST:PORT` of Jaeger; empty: nowhere.
    pub(crate) ui: String,
}

/// Switches of faults, which only test builds have.
#[cfg(feature = "faults")]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Faults {
    /// Where a test turns them; empty: nowhere.
    pub(crate) listen: String,
}

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

impl Default for Model {
    fn default() -> Self {
        Self {
            source: "default".to_owned(),
            name: String::new(),
            cache: String::new(),
        }
    }
}

impl Default for Api {
    fn default() -> Self {
        Self {
            http: SocketAddr::new(LOOPBACK, 8080),
            https: SocketAddr::new(LOOPBACK, 8443),
            public_port: 0,
            cert: String::new(),
            key: String::new(),
            max_body_bytes: 4 << 20,
            max_requests: 4_096,
            max_n: 16,
            keys: String::new(),
            cors: Vec::new(),
        }
    }
}

impl Default for Admin {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(LOOPBACK, 9090),
            worker: SocketAddr::new(LOOPBACK, 0),
            token: String::new(),
        }
    }
}

impl Default for Mesh {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(LOOPBACK, 7400),
            gateways: vec!["127.0.0.1:7400".to_owned()],
            certs: String::new(),
            heartbeat_ms: 250,
            lease_ms: 1_500,
            #[cfg(feature = "faults")]
            lose: Vec::new(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            queue_rooms: 1_024,
            queue_ms: 30_000,
            request_ms: 600_000,
            reserve_ms: 2_000,
            prefill_stall_ms: 10_000,
            pull_ms: 10_000,
            decode_stall_ms: 10_000,
            unread_tokens: 256,
            attempts: 3,
            shutdown_ms: 25_000,
        }
    }
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            role: WorkerRole::Mixed,
            device: WorkerDevice::Cpu,
            slots: 32,
            pool_mib: 1_024,
            block_tokens: 16,
            step_tokens: 256,
            chunk_tokens: 128,
            threads: 0,
            numerics: WorkerNumerics::Fast,
        }
    }
}

impl Default for Ucx {
    fn default() -> Self {
        Self {
            library: String::new(),
            tls: String::new(),
            net_devices: String::new(),
            bind: LOOPBACK,
            no_progress_ms: 2_000,
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self {
            filter: "info,ractor=warn".to_owned(),
            format: LogFormat::Text,
        }
    }
}

impl Default for Tracing {
    fn default() -> Self {
        Self {
            endpoint: String::new(),
            protocol: TracingProtocol::Grpc,
            sample: 0.01,
            slow_first_token_ms: 5_000,
            slow_total_ms: 60_000,
            ui: String::new(),
        }
    }
}
