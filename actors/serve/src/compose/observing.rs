//! Who hears of what happens in this process.

use std::sync::Arc;

use anyhow::Result;
use observe::{Listener, Metrics, Recorder, Roster};
use room::Span;
use runtime::{Clock, GatewayHandle, Node};

use crate::admin::{Pulse, Seen};
use crate::config::Config;
use crate::renewal::Expiries;
use crate::telemetry::{self, Running, Telemetry, Who};

/// What a node's events come to, apart from its log.
pub(crate) struct Observing {
    clock: Clock,
    roster: Roster,
    metrics: Arc<Metrics>,
    pulse: Arc<Pulse>,
    traces: Option<Running>,
    expiries: Expiries,
    step_limit: Span,
}

impl Observing {
    /// Starts a node whose events are heard, with these nodes of the process as its traces name them.
    pub(crate) async fn start(
        config: &Config,
        telemetry: Option<Telemetry>,
        nodes: Vec<Who>,
    ) -> Result<(Node, Self)> {
        let clock = Clock::start();
        let roster = Roster::default();
        let traces = telemetry
            .map(|telemetry| telemetry.start(&config.tracing, nodes, clock, roster.clone()))
            .transpose()?;
        let sampling = telemetry::sampling(&config.tracing);
        let metrics = Arc::new(Metrics::new(traces.as_ref().map(|_| sampling), roster.clone()));
        let mut listeners: Vec<Arc<dyn Listener>> = traces.iter().map(Running::links).collect();
        let pulse = Arc::<Pulse>::default();
        listeners.push(Arc::clone(&metrics) as Arc<dyn Listener>);
        listeners.push(Arc::clone(&pulse) as Arc<dyn Listener>);
        let sink = traces.as_ref().map(Running::sink);
        let recorder = Recorder::with_roster(roster.clone(), listeners, sink, sampling);
        let node = Node::start_with(clock, recorder).await?;
        let observing = Self {
            clock,
            roster,
            metrics,
            pulse,
            traces,
            expiries: Expiries::default(),
            step_limit: Span::from_millis(config.limits.prefill_stall_ms),
        };
        Ok((node, observing))
    }

    /// What workers are called.
    pub(crate) fn roster(&self) -> Roster {
        self.roster.clone()
    }

    /// What the last minutes were like.
    pub(crate) fn pulse(&self) -> Arc<Pulse> {
        Arc::clone(&self.pulse)
    }

    /// Until when its certificates are good.
    pub(crate) fn expiries(&self) -> Expiries {
        self.expiries.clone()
    }

    /// What every admin listener of the node shows.
    pub(crate) fn seen(&self, node: &Node, gateway: Option<GatewayHandle>) -> Seen {
        Seen {
            clock: self.clock,
            metrics: Arc::clone(&self.metrics),
            workers: node.workers(),
            gateway,
            traces: self.traces.as_ref().map(Running::counts),
            expiries: self.expiries.clone(),
            vitals: node.vitals(),
            step_limit: self.step_limit,
        }
    }

    /// The node has ended in order: what is left is told, for a bounded time.
    pub(crate) async fn finish(self) {
        if let Some(traces) = self.traces {
            traces.finish().await;
        }
    }
}
