//! A cluster of real processes.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep};

use crate::admin::{Metrics, Room, Worker};
use crate::http::{get, post};
use crate::ports::{Ports, free};
use crate::prepare;
use crate::process::Process;

/// How long anything may take before a test gives up. Not a promise of the program's: those are much shorter.
const PATIENCE: Duration = Duration::from_secs(60);

/// For `up`, which ends its own processes.
const END_IN_ORDER: Duration = Duration::from_secs(8);

/// What the model is called in all clusters.
pub const MODEL: &str = "tested";

/// Clusters run one after the other: each of them takes the whole machine.
static TURN: Mutex<()> = Mutex::const_new(());

/// A cluster; everything in it ends with it.
pub struct Cluster {
    processes: BTreeMap<String, Process>,
    /// Where fault switches are turned, by process.
    doors: BTreeMap<String, SocketAddr>,
    /// Where workers have their admin listeners, by name.
    admins: BTreeMap<String, SocketAddr>,
    /// What stands in front of a process's command: see [`behind`](Self::behind).
    prefixes: BTreeMap<String, Vec<String>>,
    ports: Ports,
    folder: TempDir,
    /// Arguments of every process.
    common: Vec<String>,
    /// None beside a cluster that has it.
    _turn: Option<MutexGuard<'static, ()>>,
}

impl Cluster {
    /// A cluster without processes, in which all have these configuration keys, such as `worker.slots=8`.
    pub async fn new(sets: &[&str]) -> Self {
        Self::in_turn(Some(TURN.lock().await), sets)
    }

    fn in_turn(turn: Option<MutexGuard<'static, ()>>, sets: &[&str]) -> Self {
        let folder = TempDir::with_prefix("innkeeper-test").expect("a folder");
        let ports = Ports::free();
        let cache = prepare::cache_in(folder.path());
        let own = [
            format!("model.cache={}", cache.display()),
            format!("api.http={}", ports.http),
            format!("api.https={}", ports.https),
            format!("admin.listen={}", ports.admin),
            format!("mesh.listen={}", ports.mesh),
            format!("mesh.gateways=[\"{}\"]", ports.mesh),
            format!("model.name={MODEL}"),
            "worker.pool_mib=450".to_owned(),
            "worker.threads=1".to_owned(),
            "limits.shutdown_ms=3000".to_owned(),
        ];
        let sets = own.into_iter().chain(sets.iter().map(|set| (*set).to_owned()));
        let common = sets.flat_map(|set| ["--set".to_owned(), set]);
        Self {
            processes: BTreeMap::new(),
            doors: BTreeMap::new(),
            admins: BTreeMap::new(),
            prefixes: BTreeMap::new(),
            ports,
            folder,
            common: common.chain(["--stop-with-stdin".to_owned()]).collect(),
            _turn: turn,
        }
    }

    /// `innkeeper up` with these arguments, once it is ready.
    pub async fn up(arguments: &[&str], sets: &[&str], workers: usize) -> Self {
        let mut cluster = Self::new(sets).await;
        cluster.start_up(arguments, workers).await;
        cluster
    }

    /// The same beside this one, for those who compare them.
    pub(crate) async fn up_beside(&self, arguments: &[&str], sets: &[&str], workers: usize) -> Self {
        let mut cluster = Self::in_turn(None, sets);
        cluster.start_up(arguments, workers).await;
        cluster
    }

    async fn start_up(&mut self, arguments: &[&str], workers: usize) {
        let arguments: Vec<&str> = ["up"].into_iter().chain(arguments.iter().copied()).collect();
        self.start("up", &arguments, &[]);
        self.ready(workers).await;
    }

    /// A gateway and workers, named `prefill-0` and so on, as processes that the test can get at, once they are ready.
    pub async fn apart(prefill: usize, decode: usize, sets: &[&str]) -> Self {
        let mut cluster = Self::new(sets).await;
        cluster.start_gateway(&[]);
        for (role, count) in [("prefill", prefill), ("decode", decode)] {
            for index in 0..count {
                cluster.start_worker(role, &format!("{role}-{index}"), &[]);
            }
        }
        cluster.ready(prefill + decode).await;
        cluster
    }

    /// Starts the gateway.
    pub fn start_gateway(&mut self, sets: &[&str]) {
        self.start_with_door("gateway-0", &["gateway"], sets);
    }

    /// Starts a worker.
    pub fn start_worker(&mut self, role: &str, name: &str, sets: &[&str]) {
        let admin = free();
        let listen = format!("admin.worker={admin}");
        let sets: Vec<&str> = sets.iter().copied().chain([listen.as_str()]).collect();
        self.start_with_door(name, &["worker", "--role", role, "--name", name], &sets);
        self.admins.insert(name.to_owned(), admin);
    }

    /// With a door for its fault switches: see [`fault`](Self::fault).
    fn start_with_door(&mut self, name: &str, arguments: &[&str], sets: &[&str]) {
        let door = free();
        let listen = format!("faults.listen=\"{door}\"");
        let sets: Vec<&str> = sets.iter().copied().chain([listen.as_str()]).collect();
        self.start(name, arguments, &sets);
        self.doors.insert(name.to_owned(), door);
    }

    fn start(&mut self, name: &str, arguments: &[&str], sets: &[&str]) {
        let mut all: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
        all.extend(self.common.iter().cloned());
        all.extend(
            sets.iter()
                .flat_map(|set| ["--set".to_owned(), (*set).to_owned()]),
        );
        let mut program = prepare::program();
        if let Some((first, rest)) = self.prefixes.get(name).and_then(|prefix| prefix.split_first()) {
            let own = program.display().to_string();
            all = rest.iter().cloned().chain([own]).chain(all).collect();
            program = first.into();
        }
        let process = Process::start(&program, name, &all, self.folder.path());
        self.processes.insert(name.to_owned(), process);
    }

    /// Has a process start behind these words from now on: a command that becomes the one which follows it, such as
    /// `prlimit --nofile=64`, `env NAME=VALUE` or `nsenter --net=FILE`. No words: as it is.
    pub fn behind(&mut self, name: &str, words: &[&str]) {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        self.prefixes.insert(name.to_owned(), words);
    }

    /// A folder that goes with the cluster.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its cache: the model, and the development authority in `dev-ca`.
    #[must_use]
    pub fn cache(&self) -> PathBuf {
        prepare::cache_of(self.folder())
    }

    /// Where a process has its fault door.
    ///
    /// # Panics
    /// If there is no such process.
    #[must_use]
    pub fn door(&self, process: &str) -> SocketAddr {
        let door = self.doors.get(process);
        *door.unwrap_or_else(|| panic!("no process {process}"))
    }

    /// Where a worker has its admin listener.
    ///
    /// # Panics
    /// If there is no such worker.
    #[must_use]
    pub fn worker_admin(&self, name: &str) -> SocketAddr {
        let admin = self.admins.get(name);
        *admin.unwrap_or_else(|| panic!("no worker {name}"))
    }

    /// Where it listens.
    #[must_use]
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// A process, by name.
    ///
    /// # Panics
    /// If there is none.
    pub fn process(&mut self, name: &str) -> &mut Process {
        let process = self.processes.get_mut(name);
        process.unwrap_or_else(|| panic!("no process {name}"))
    }

    /// The processes that run, as far as the test knows.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let running = self.processes.iter().filter(|(_, process)| !process.is_over());
        running.map(|(name, _)| name.clone()).collect()
    }

    /// Turns fault switches of a gateway or worker: `calm`, `engine`, `reads`, `frames`, `cut` and `doom`, as its fault door takes them.
    ///
    /// # Panics
    /// If it does not take them.
    pub async fn fault(&self, process: &str, switches: &Value) {
        let door = self.door(process);
        // One that is just starting opens it soon; one whose worker is built anew takes all switches soon.
        let taken = || async {
            let answer = post(door, "/faults", switches).await.ok()?;
            (answer.status != 503).then_some(answer)
        };
        let (answer, _) = self.until(&format!("the fault door of {process}"), taken).await;
        let status = answer.status;
        let text = answer.text().await.unwrap_or_default();
        assert_eq!(status, 200, "{process} does not take {switches}: {text}");
    }

    /// What the fault switches of a process have hit so far: `frames`, `steps` and `reads`.
    pub async fn hits(&self, process: &str) -> Value {
        let door = self.door(process);
        let answer = get(door, "/faults").await.expect("the fault door");
        let text = answer.text().await.expect("the fault door");
        serde_json::from_str(&text).expect("the fault door answers in JSON")
    }

    /// Waits until it can serve and so many workers are linked.
    pub async fn ready(&mut self, workers: usize) {
        let started = Instant::now();
        loop {
            for process in self.processes.values_mut() {
                assert!(!process.is_lost(), "{} has ended", process.name());
            }
            let answer = get(self.ports.http, "/health/ready").await;
            if matches!(answer, Ok(answer) if answer.status == 200) && self.workers().await.len() == workers {
                return;
            }
            assert!(
                started.elapsed() < PATIENCE,
                "the cluster does not become ready with {workers} workers"
            );
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn admin<T: DeserializeOwned>(&self, path: &str) -> T {
        let answer = get(self.ports.admin, path).await.expect("the admin listener");
        let text = answer.text().await.expect("the admin listener");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}"))
    }

    /// The rooms that have not ended.
    pub async fn rooms(&self) -> Vec<Room> {
        self.admin("/rooms").await
    }

    /// The rooms that ended lately.
    pub async fn rooms_ended(&self) -> Vec<Room> {
        self.admin("/rooms/ended").await
    }

    /// The workers that are linked. INV-02 is checked whenever they are asked for.
    pub async fn workers(&self) -> Vec<Worker> {
        let workers: Vec<Worker> = self.admin("/workers").await;
        workers.iter().for_each(Worker::check_sum);
        workers
    }

    /// The metrics.
    pub async fn metrics(&self) -> Metrics {
        let answer = get(self.ports.admin, "/metrics")
            .await
            .expect("the admin listener");
        Metrics(answer.text().await.expect("the admin listener"))
    }

    /// Waits until `holds` gives something, and says how long that took.
    ///
    /// # Panics
    /// If it does not come.
    pub async fn until<T, F>(&self, what: &str, mut holds: impl FnMut() -> F) -> (T, Duration)
    where
        F: Future<Output = Option<T>>,
    {
        let started = Instant::now();
        loop {
            if let Some(found) = holds().await {
                return (found, started.elapsed());
            }
            if started.elapsed() >= PATIENCE {
                let (rooms, workers) = (self.rooms().await, self.workers().await);
                panic!("it never came to this: {what}\nrooms: {rooms:#?}\nworkers: {workers:#?}");
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until `/rooms` is empty, so many workers are linked and each has everything back; gives the time that took.
    pub async fn all_back(&self, workers: usize) -> Duration {
        let what = format!("no room, and {workers} workers with every block free or cached");
        let back = || async {
            let rooms = self.rooms().await;
            let all = self.workers().await;
            (rooms.is_empty() && all.len() == workers && all.iter().all(Worker::is_idle)).then_some(())
        };
        self.until(&what, back).await.1
    }

    /// Waits until rooms open = histories open = leases held, as the gateway's own metrics have it; what is forgotten stays as a difference.
    pub async fn balanced(&self) {
        let even = || async {
            let metrics = self.metrics().await;
            let differences = metrics.samples("innkeeper_conservation_difference");
            assert!(
                !differences.is_empty(),
                "the gateway's metrics have no differences"
            );
            differences.iter().all(|(_, apart)| *apart == 0.0).then_some(())
        };
        self.until("rooms, histories and leases are as many as each other", even)
            .await;
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(up) = self.processes.get_mut("up") {
            up.end_in_order(END_IN_ORDER);
        }
    }
}
