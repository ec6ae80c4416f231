//! Traces on their way out of the process, by OTLP.
//!
//! ```text
//!   actors ── histories ──┐ try_send                    one task
//!   start-up ── spans ────┼────────▶ bounded queue ──▶ spans, batches ──▶ OTLP (gRPC or HTTP)
//!   links ────────────────┘
//! ```
//!
//! Nobody who serves a request waits for any of this: what the queue cannot take is dropped and counted, histories are shared and become
//! spans in the task, and a collector that does not answer holds up the task and nobody else.
//!
//! Each node of the process is a resource of its own: a whole cluster in one process looks like one in many.

mod convert;
mod export;
mod links;
mod queue;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use observe::{Listener, Roster, Sampling, TraceSink};
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::{SdkTracerProvider, Tracer};
use room::Span;
use runtime::Clock;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing_opentelemetry::OpenTelemetryLayer;

use crate::config::Tracing;
use export::Exporting;
use links::Links;
pub(crate) use queue::Counts;
use queue::{Item, Own, Queue};

/// How long what is left may take at the end of the process.
const FINISH: Duration = Duration::from_secs(2);

/// Name of the scope of all our spans, and of the service.
const SERVICE: &str = "innkeeper";

/// A node of this process, as its traces name it.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    /// Its name.
    pub(crate) name: String,
    /// What it does: `gateway`, `prefill`, `decode` or `mixed`.
    pub(crate) role: &'static str,
}

/// What is needed of traces before there is a runtime: where spans are put.
pub(crate) struct Telemetry {
    queue: Queue,
    items: tokio::sync::mpsc::Receiver<Item>,
    provider: SdkTracerProvider,
}

/// Traces are sent.
pub(crate) struct Running {
    queue: Queue,
    stop: CancellationToken,
    task: JoinHandle<()>,
    /// Its spans come to the queue as long as it is there.
    _provider: SdkTracerProvider,
}

impl Telemetry {
    /// None if no traces are wanted.
    pub(crate) fn new(config: &Tracing) -> Option<Self> {
        if config.endpoint.is_empty() {
            return None;
        }
        let (queue, items) = Queue::new();
        let own = Own(queue.clone());
        let provider = SdkTracerProvider::builder().with_span_processor(own).build();
        Some(Self {
            queue,
            items,
            provider,
        })
    }

    /// Makes spans of the node's own life out of those that `tracing` is told of.
    pub(crate) fn layer<S>(&self) -> OpenTelemetryLayer<S, Tracer>
    where
        S: tracing::Subscriber + for<'span> tracing_subscriber::registry::LookupSpan<'span>,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(SERVICE))
            .with_threads(false)
            .with_location(false)
            .with_tracked_inactivity(false)
    }

    /// Begins to send. The first of `nodes` is the one whose requests and whose start are told; workers are
    /// called as `roster` has it.
    ///
    /// # Errors
    /// If the configuration names no collector that can be spoken to.
    pub(crate) fn start(
        self,
        config: &Tracing,
        nodes: Vec<Who>,
        clock: Clock,
        roster: Roster,
    ) -> Result<Running> {
        let exporting = Exporting::new(config, nodes, (clock, roster), self.queue.counts())?;
        let stop = CancellationToken::new();
        // Ends with `stop`, and what is left then within `FINISH`.
        let task = tokio::spawn(exporting.run(self.items, stop.clone()));
        Ok(Running {
            queue: self.queue,
            stop,
            task,
            _provider: self.provider,
        })
    }
}

impl Running {
    /// Where histories go.
    pub(crate) fn sink(&self) -> Arc<dyn TraceSink> {
        Arc::new(self.queue.clone())
    }

    /// Makes spans of links.
    pub(crate) fn links(&self) -> Arc<dyn Listener> {
        Arc::new(Links::new(self.queue.clone()))
    }

    /// What was sent and what was lost.
    pub(crate) fn counts(&self) -> Arc<Counts> {
        self.queue.counts()
    }

    /// Sends what is left, for a bounded time.
    pub(crate) async fn finish(mut self) {
        self.stop.cancel();
        if timeout(FINISH, &mut self.task).await.is_err() {
            self.task.abort();
            tracing::warn!("the collector of traces does not answer: the last ones are lost");
        }
    }
}

/// Which traces are kept.
pub(crate) fn sampling(config: &Tracing) -> Sampling {
    Sampling {
        // What nobody collects is not said to be recorded.
        ratio: if config.endpoint.is_empty() {
            0.0
        } else {
            config.sample
        },
        slow_first_token: Span::from_millis(config.slow_first_token_ms),
        slow_total: Span::from_millis(config.slow_total_ms),
    }
}

#[cfg(test)]
mod tests;
