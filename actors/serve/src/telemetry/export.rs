//! The task that sends: items become spans, spans batches, batches requests to the collector.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use observe::Roster;
use observe::span::{of_request, of_stay};
use opentelemetry::KeyValue;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use room::NodeId;
use runtime::Clock;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::convert::{self, Wall};
use super::queue::{Counts, Item};
use super::{SERVICE, Who};
use crate::config::{Tracing, TracingProtocol};

/// Items that are looked at together.
const BATCH: usize = 256;
/// How long the first of them waits for others.
const LINGER: Duration = Duration::from_millis(500);
/// Spans of one request to the collector: collectors take four megabytes, and a span of a long prompt has some kilobytes.
const AT_ONCE: usize = 512;
/// How long the collector may take, with all tries.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is told that it takes nothing.
const TELL_AGAIN: Duration = Duration::from_secs(60);

/// Who sends.
pub(super) struct Exporting {
    /// By the names of this process's nodes.
    exporters: BTreeMap<String, SpanExporter>,
    /// The node whose requests and whose start are told.
    first: String,
    wall: Wall,
    roster: Roster,
    counts: Arc<Counts>,
    trouble: Option<Trouble>,
}

/// The collector takes nothing.
struct Trouble {
    told: Instant,
    lost: usize,
}

impl Exporting {
    pub(super) fn new(
        config: &Tracing,
        nodes: Vec<Who>,
        (clock, roster): (Clock, Roster),
        counts: Arc<Counts>,
    ) -> Result<Self> {
        let first = nodes.first().map(|node| node.name.clone()).unwrap_or_default();
        let mut exporters = BTreeMap::new();
        for node in nodes {
            let mut exporter = exporter(config).context("tracing.endpoint")?;
            exporter.set_resource(&resource(&node));
            exporters.insert(node.name, exporter);
        }
        Ok(Self {
            exporters,
            first,
            wall: Wall::new(clock),
            roster,
            counts,
            trouble: None,
        })
    }

    /// Sends until `stop`, and then what is left. Its owner bounds that.
    pub(super) async fn run(mut self, mut items: mpsc::Receiver<Item>, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let mut batch = Vec::new();
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                _ = items.recv_many(&mut batch, BATCH) => {}
            }
            if batch.is_empty() && items.is_closed() {
                return;
            }
            let lingered = sleep(LINGER);
            tokio::pin!(lingered);
            while batch.len() < BATCH {
                let room = BATCH - batch.len();
                tokio::select! {
                    biased;
                    () = stop.cancelled() => break,
                    () = &mut lingered => break,
                    got = items.recv_many(&mut batch, room) => if got == 0 { break },
                }
            }
            self.send(batch).await;
        }
        items.close();
        loop {
            let mut batch = Vec::new();
            if items.recv_many(&mut batch, BATCH).await == 0 {
                return;
            }
            self.send(batch).await;
        }
    }

    async fn send(&mut self, batch: Vec<Item>) {
        self.wall.look();
        let mut by_node: BTreeMap<String, Vec<SpanData>> = BTreeMap::new();
        for item in batch {
            let (node, spans) = self.spans(item);
            by_node.entry(node).or_default().extend(spans);
        }
        for (node, mut spans) in by_node {
            // A worker that is none of this process's: there is none such.
            let exporter = self
                .exporters
                .get(&node)
                .or_else(|| self.exporters.get(&self.first));
            let Some(exporter) = exporter else { continue };
            let mut results = Vec::new();
            while !spans.is_empty() {
                let rest = spans.split_off(spans.len().min(AT_ONCE));
                let count = spans.len();
                let sent = timeout(PATIENCE, exporter.export(std::mem::replace(&mut spans, rest))).await;
                let failed = match sent {
                    Ok(Ok(())) => None,
                    Ok(Err(error)) => Some(error.to_string()),
                    Err(_) => Some("it does not answer in time".to_owned()),
                };
                results.push((count, failed));
            }
            for (count, failed) in results {
                self.counts.count(count, failed.is_none());
                self.told(count, failed);
            }
        }
    }

    fn spans(&self, item: Item) -> (String, Vec<SpanData>) {
        let name = |node: NodeId| self.roster.called(node).to_string();
        let all = |spans: Vec<observe::span::TraceSpan>| {
            let spans = spans
                .into_iter()
                .map(|span| convert::span(span, &self.wall, &name));
            spans.collect()
        };
        match item {
            Item::Request(rooms, keep) => (self.first.clone(), all(of_request(&rooms, keep))),
            Item::Stay(stay) => (stay.facts().name.to_string(), all(of_stay(&stay))),
            Item::Own(span) => (self.first.clone(), vec![*span]),
            Item::Link(link) => (
                link.name.to_string(),
                vec![convert::link(&link, &self.wall, &name)],
            ),
        }
    }

    /// Says so when the collector begins to take nothing, every minute from then on, and when it takes spans again.
    fn told(&mut self, count: usize, failed: Option<String>) {
        let Some(error) = failed else {
            if let Some(trouble) = self.trouble.take() {
                info!(lost_spans = trouble.lost, "the collector takes traces again");
            }
            return;
        };
        match &mut self.trouble {
            None => {
                warn!(%error, lost_spans = count, "the collector takes no traces: they are lost until it does");
                self.trouble = Some(Trouble {
                    told: Instant::now(),
                    lost: count,
                });
            }
            Some(trouble) => {
                trouble.lost += count;
                if trouble.told.elapsed() >= TELL_AGAIN {
                    trouble.told = Instant::now();
                    warn!(%error, lost_spans = trouble.lost, "the collector still takes no traces");
                }
            }
        }
    }
}

fn exporter(config: &Tracing) -> Result<SpanExporter> {
    let endpoint = config.endpoint.trim_end_matches('/');
    let built = match config.protocol {
        TracingProtocol::Grpc => SpanExporter::builder()
            .with_tonic()
            .with_endpoint(endpoint)
            .with_timeout(PATIENCE)
            .build(),
        TracingProtocol::Http => SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{endpoint}/v1/traces"))
            .with_timeout(PATIENCE)
            .build(),
    };
    Ok(built?)
}

fn resource(node: &Who) -> Resource {
    Resource::builder_empty()
        .with_attributes([
            KeyValue::new("service.name", SERVICE),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", node.name.clone()),
            KeyValue::new("innkeeper.role", node.role),
            KeyValue::new("process.pid", i64::from(std::process::id())),
        ])
        .build()
}
