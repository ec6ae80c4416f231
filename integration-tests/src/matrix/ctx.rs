//! What a cell works with: a cluster, its fault switches, and the time since the injection.

use std::any::Any;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::load::same;
use crate::cluster::Cluster;
use crate::stream::{Answer, answer, answers, completion};

/// A cluster in which cells are run.
pub struct Ctx {
    /// The cluster.
    pub cluster: Cluster,
    /// How many workers are linked when nobody is missing.
    pub workers: usize,
    /// What the setup has beside the processes, such as proxies.
    pub extra: Option<Box<dyn Any + Send + Sync>>,
    /// Prompts used so far: none is used twice, so that nothing of a new one is cached.
    used: u32,
    references: BTreeMap<String, Answer>,
    injected: Option<Instant>,
}

impl Ctx {
    /// Around a cluster that is ready, with so many workers.
    #[must_use]
    pub fn new(cluster: Cluster, workers: usize) -> Self {
        Self {
            cluster,
            workers,
            extra: None,
            used: 0,
            references: BTreeMap::new(),
            injected: None,
        }
    }

    /// The fault happens now.
    pub fn injected(&mut self) {
        self.injected = Some(Instant::now());
    }

    /// Time since the injection.
    ///
    /// # Panics
    /// If there was none.
    #[must_use]
    pub fn since(&self) -> Duration {
        self.injected.expect("a cell says when it injects").elapsed()
    }

    /// Waits until no room is left and so many workers are linked with everything back; gives the time since the injection.
    pub async fn back(&self, workers: usize) -> Duration {
        self.cluster.all_back(workers).await;
        self.since()
    }

    /// Sets fault switches of a process: see the fault door of the program.
    pub async fn fault(&self, process: &str, switches: Value) {
        self.cluster.fault(process, &switches).await;
    }

    /// Every switch of a process off.
    pub async fn calm(&self, process: &str) {
        self.fault(process, json!({ "calm": true })).await;
    }

    /// A beginning that no prompt of this cluster had before.
    pub fn fresh(&mut self) -> String {
        self.used += 1;
        format!("Guest {} of room {}:", self.used, self.used * 7 % 101)
    }

    /// A greedy request of `words` words behind a fresh beginning.
    pub fn request(&mut self, words: usize, tokens: u32) -> Value {
        let prompt = format!("{}{}", self.fresh(), " word".repeat(words));
        completion(&prompt, tokens, 0.0, 0)
    }

    /// The answer to a request on this cluster while nothing is wrong, taken once.
    pub async fn reference(&mut self, request: &Value) -> Answer {
        let key = request.to_string();
        if let Some(known) = self.references.get(&key) {
            return known.clone();
        }
        let undisturbed = answer(self.cluster.ports().http, request).await;
        assert_eq!(undisturbed.status, 200, "{undisturbed:?}");
        assert!(undisturbed.done, "{undisturbed:?}");
        self.references.insert(key, undisturbed.clone());
        undisturbed
    }

    /// Starts a worker that was killed anew, under its name, and waits until nobody is missing.
    pub async fn again(&mut self, worker: &str) {
        let role = worker.split('-').next().unwrap_or_default();
        self.cluster.start_worker(role, worker, &[]);
        self.cluster.ready(self.workers).await;
    }

    /// The one outcome of a room, as soon as it has it.
    pub async fn outcome(&self, room: &str) -> String {
        let settled = || async {
            let (open, ended) = (self.cluster.rooms().await, self.cluster.rooms_ended().await);
            let mut all = open.into_iter().chain(ended);
            all.find(|view| view.room == room)?.outcome
        };
        self.cluster.until("a room has its outcome", settled).await.0
    }

    /// Waits until a worker's loss is known: nothing is given to it any more, and its rooms are in their next attempts. Gives the time since
    /// the injection.
    pub async fn known(&self, lost: &str) -> Duration {
        let gone = || async {
            let workers = self.cluster.workers().await;
            workers.iter().all(|worker| worker.name != lost).then_some(())
        };
        self.cluster.until("the loss is known", gone).await;
        self.since()
    }

    /// Steps that the engine of a worker has begun.
    pub async fn steps(&self, worker: &str) -> u64 {
        self.cluster.hits(worker).await["steps"]
            .as_u64()
            .unwrap_or_default()
    }

    /// Demands that each answer is whole and has the tokens of the undisturbed one. Those are asked for together: no company changes a token.
    pub async fn check_same(&mut self, disturbed: &[(Value, Answer)]) {
        let requests: Vec<Value> = disturbed.iter().map(|(request, _)| request.clone()).collect();
        let expected = answers(self.cluster.ports().http, &requests).await;
        for (expected, (_, answer)) in expected.iter().zip(disturbed) {
            assert!(expected.done, "{expected:?}");
            same(expected, answer);
        }
    }

    /// The sum of a metric's samples whose labels contain `label`.
    pub async fn metric(&self, family: &str, label: &str) -> f64 {
        self.cluster.metrics().await.sum(family, label)
    }
}
