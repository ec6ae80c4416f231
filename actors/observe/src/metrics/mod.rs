//! Metrics: what events add up to, and what views say at the moment of a scrape. As OpenMetrics with exemplars (trace ids), or in Prometheus' older
//! text format without.
//!
//! Names begin with `innkeeper_`; units are base units. What a worker says of itself begins with `innkeeper_worker_`: a gateway tells of its
//! workers too, and the two are not to be added up. Labels are bounded: outcomes, reasons, phases and causes by their types, names of workers and
//! transports by [`names`].

mod conservation;
mod families;
mod levels;
mod names;
mod nodes;
mod outcomes;
mod rooms;
mod stays;

use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::registry::Registry;

pub use levels::{
    GatewayLevels, LinkLevel, LinkedWorker, NodeLevels, Pool, RoomLevel, Tables, TurnedAway, WorkerLevels,
};
pub use outcomes::outcomes;

use crate::recorder::{Listener, Told};
use crate::roster::Roster;
use crate::sampling::Sampling;
use conservation::Open;
use families::{Exemplars, Shelf};
use names::Names;
use nodes::Nodes;
use rooms::Rooms;
use stays::Stays;

/// How metrics are written.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Exposition {
    /// OpenMetrics 1.0: with exemplars.
    OpenMetrics,
    /// Prometheus' text format 0.0.4.
    Plain,
}

impl Exposition {
    /// What an `Accept` header asks for. Whoever does not ask for OpenMetrics gets what everybody can read.
    #[must_use]
    pub fn accepted(accept: &str) -> Self {
        match accept.contains("application/openmetrics-text") {
            true => Self::OpenMetrics,
            false => Self::Plain,
        }
    }

    /// The `Content-Type` of such text.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Plain => prometheus_text::CONTENT_TYPE,
        }
    }
}

/// A node's metrics.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    names: Names,
    exemplars: Exemplars,
    rooms: Rooms,
    stays: Stays,
    nodes: Nodes,
}

impl Metrics {
    /// Those of a node where nothing has happened yet. `sampling` is what traces are kept by, if any are made: exemplars name those that are.
    /// `roster` is the node's: its recorder's.
    #[must_use]
    pub fn new(sampling: Option<Sampling>, roster: Roster) -> Self {
        let mut registry = Registry::default();
        let mut shelf = Shelf(&mut registry);
        let (rooms, stays, nodes) = (
            Rooms::new(&mut shelf),
            Stays::new(&mut shelf),
            Nodes::new(&mut shelf),
        );
        Self {
            registry,
            names: Names::new(roster),
            exemplars: Exemplars { sampling },
            rooms,
            stays,
            nodes,
        }
    }

    /// All of it now, with what views say.
    #[must_use]
    pub fn text(&self, levels: &NodeLevels, exposition: Exposition) -> String {
        let open = levels.gateway.as_ref().map(|gateway| {
            // Ended first: a room that ends between the two reads is counted as open, and one that is opened too.
            let ended = self.rooms.ended.get();
            let opened = self.rooms.opened.get();
            let histories = i64::try_from(opened.saturating_sub(ended)).unwrap_or(i64::MAX);
            Open::new(gateway, histories)
        });
        let now = levels::register(levels, open, &self.names);
        let mut written = String::new();
        let all = [&self.registry, &now];
        // Writing to a String does not fail, and no metric's encoder of ours does.
        let _ = match exposition {
            Exposition::OpenMetrics => all
                .into_iter()
                .try_for_each(|registry| text::encode_registry(&mut written, registry))
                .and_then(|()| text::encode_eof(&mut written)),
            Exposition::Plain => all
                .into_iter()
                .try_for_each(|registry| prometheus_text::encode(&mut written, registry)),
        };
        written
    }
}

impl Listener for Metrics {
    fn told(&self, told: &Told<'_>) {
        match told {
            Told::Room {
                event,
                facts,
                state,
                gap,
            } => self
                .rooms
                .told(event, facts, state, *gap, (&self.names, &self.exemplars)),
            Told::Stay { event, facts, gap } => {
                self.stays
                    .told(event, facts.map(|facts| &**facts), *gap, &self.names);
            }
            Told::Node(event) => self.nodes.told(event, &self.names, (&self.rooms, &self.stays)),
        }
    }
}
