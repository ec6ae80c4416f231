//! A model file from the Hugging Face hub (or one that speaks like it).

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;

use hf_hub::Cache;
use hf_hub::api::sync::{ApiBuilder, ApiRepo};
use pypi::Lock;

use super::{FetchError, FetchOptions, Progress};

/// Storage formats in the order they are chosen when a repository has several and none was named: small first, then exact.
const PREFERRED: [&str; 7] = ["q4_1", "q4_0", "q4_k_m", "q8_0", "q6_k", "bf16", "f16"];

/// What the fetching thread reports.
enum Event {
    Progress(Progress),
    Done(Result<PathBuf, String>),
}

/// The file, from the hub's own cache layout under the cache folder or from the hub. The hub is not asked for what is here.
///
/// The hub's client has no deadlines, so it runs on a thread of its own; when it goes silent for too long that thread is left behind
/// and ends with its socket or with the process.
pub(super) fn fetch(
    repo: &str,
    file: Option<&str>,
    options: &FetchOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf, FetchError> {
    let cache = Cache::new(options.cache_dir.join("hub"));
    if let Some(path) = cached(&cache, repo, file) {
        return Ok(path);
    }
    // The hub's client fails where another process is fetching.
    std::fs::create_dir_all(cache.path()).map_err(super::cache(cache.path()))?;
    let lock = cache.path().join(lock_name(repo));
    let _lock = Lock::acquire(&lock, options.busy, &mut || 0)?;
    if let Some(path) = cached(&cache, repo, file) {
        return Ok(path);
    }
    let failed = |detail: String| FetchError::Hub {
        repo: repo.to_owned(),
        detail,
    };
    let (sender, events) = sync_channel(64);
    let (name, file, endpoint) = (
        repo.to_owned(),
        file.map(str::to_owned),
        options.hub_endpoint.clone(),
    );
    thread::Builder::new()
        .name("hub-fetch".to_owned())
        .spawn(move || {
            let result = download(&cache, endpoint, &name, file, &sender);
            // Nobody listens any more where the caller gave up.
            let _ = sender.send(Event::Done(result));
        })
        .map_err(|e| failed(e.to_string()))?;
    follow(&events, options, progress).map_err(failed)
}

fn lock_name(repo: &str) -> String {
    format!(".{}.lock", repo.replace('/', "--"))
}

/// What an earlier fetch has left in the cache: the named file, or the one to take of those that lie there.
fn cached(cache: &Cache, repo: &str, file: Option<&str>) -> Option<PathBuf> {
    let repo = cache.model(repo.to_owned());
    if let Some(file) = file {
        return repo.get(file);
    }
    let snapshot = std::fs::read_dir(repo.get(".")?).ok()?;
    let names = snapshot.flatten().map(|entry| entry.file_name().into_string());
    let names: Vec<String> = names.filter_map(Result::ok).collect();
    repo.get(&choose(&names).ok()?)
}

/// Passes progress on until the thread is done or has been silent for too long.
fn follow(
    events: &Receiver<Event>,
    options: &FetchOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf, String> {
    loop {
        match events.recv_timeout(options.stall) {
            Ok(Event::Progress(p)) => progress(p),
            Ok(Event::Done(result)) => return result,
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("nothing arrived for {} s", options.stall.as_secs()));
            }
            // The client panicked: it does on some malformed answers, and where there is no home folder.
            Err(RecvTimeoutError::Disconnected) => {
                return Err("the hub's answer was not understood, or HOME is not set".to_owned());
            }
        }
    }
}

fn download(
    cache: &Cache,
    endpoint: Option<String>,
    name: &str,
    file: Option<String>,
    events: &SyncSender<Event>,
) -> Result<PathBuf, String> {
    let mut builder = ApiBuilder::from_env()
        .with_cache_dir(cache.path().clone())
        .with_progress(false);
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    let repo = builder.build().map_err(|e| describe(&e))?.model(name.to_owned());
    let file = match file {
        Some(file) => file,
        None => choose(&listing(&repo)?)?,
    };
    // Chosen just now, and perhaps not at the top of the repository, where `cached` looks.
    if let Some(path) = cached(cache, name, Some(&file)) {
        return Ok(path);
    }
    let watch = Watch {
        events: events.clone(),
        done: 0,
        total: 0,
    };
    repo.download_with_progress(&file, watch)
        .map_err(|e| describe(&e))
}

fn listing(repo: &ApiRepo) -> Result<Vec<String>, String> {
    let info = repo.info().map_err(|e| describe(&e))?;
    Ok(info.siblings.into_iter().map(|s| s.rfilename).collect())
}

/// The file to take of a repository's files.
fn choose(files: &[String]) -> Result<String, String> {
    let whole = |f: &&String| f.ends_with(".gguf") && !f.contains("-of-");
    let rank = |f: &str| {
        let lower = f.to_ascii_lowercase();
        PREFERRED
            .iter()
            .position(|p| lower.contains(p))
            .unwrap_or(PREFERRED.len())
    };
    let best = files.iter().filter(whole).min_by_key(|f| (rank(f), f.as_str()));
    best.cloned()
        .ok_or_else(|| "it has no GGUF file in one piece; name a repository that has, or give the path of a folder with its files".to_owned())
}

/// An error with its causes.
fn describe(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |e| e.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Sends progress to the caller; blocks while the caller is behind.
struct Watch {
    events: SyncSender<Event>,
    done: u64,
    total: u64,
}

impl Watch {
    fn report(&self) {
        let progress = Progress {
            done_bytes: self.done,
            total_bytes: self.total,
        };
        // Nobody listens any more where the caller gave up.
        let _ = self.events.send(Event::Progress(progress));
    }
}

impl hf_hub::api::Progress for Watch {
    fn init(&mut self, size: usize, _file: &str) {
        (self.done, self.total) = (0, size as u64);
        self.report();
    }

    fn update(&mut self, size: usize) {
        self.done += size as u64;
        self.report();
    }

    fn finish(&mut self) {}
}

#[cfg(test)]
mod tests;
