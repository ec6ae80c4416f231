//! Our spans as OpenTelemetry has them.

use std::time::{Duration, SystemTime};

use observe::span::{Attribute, Status, TraceSpan, Value};
use observe::{SpanId, SpanKind, TraceId};
use opentelemetry::trace::{self, SpanContext, TraceFlags, TraceState};
use opentelemetry::{Array, InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use room::{NodeId, Time};
use runtime::Clock;

use super::SERVICE;
use super::queue::Link;

/// The node's clock in the world's time.
pub(super) struct Wall {
    clock: Clock,
    origin: SystemTime,
}

/// The world's clock may be set; then times are shown by the new one. Smaller differences are of its reading, and spans of one request
/// must not move against each other.
const SET: Duration = Duration::from_millis(100);

impl Wall {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            origin: origin(clock),
        }
    }

    /// Looks whether the world's clock was set.
    pub(super) fn look(&mut self) {
        let now = origin(self.clock);
        let apart = match now.duration_since(self.origin) {
            Ok(apart) => apart,
            Err(earlier) => earlier.duration(),
        };
        if apart > SET {
            self.origin = now;
        }
    }

    fn at(&self, time: Time) -> SystemTime {
        self.origin + Duration::from_micros(time.micros)
    }
}

fn origin(clock: Clock) -> SystemTime {
    let now = SystemTime::now();
    now.checked_sub(Duration::from_micros(clock.now().micros))
        .unwrap_or(now)
}

/// What a node is called.
pub(super) type Name<'a> = &'a dyn Fn(NodeId) -> String;

/// Makes one of ours one of theirs.
pub(super) fn span(span: TraceSpan, wall: &Wall, name: Name<'_>) -> SpanData {
    let mut events = SpanEvents::default();
    events.events = span
        .events
        .into_iter()
        .map(|event| {
            trace::Event::new(
                event.name,
                wall.at(event.at),
                attributes(event.attributes, name),
                0,
            )
        })
        .collect();
    let mut links = SpanLinks::default();
    links.links = span
        .links
        .into_iter()
        .map(|link| trace::Link::new(context(span.trace, link.to), attributes(link.attributes, name), 0))
        .collect();
    SpanData {
        span_context: context(span.trace, span.id),
        parent_span_id: span.parent.map_or(trace::SpanId::INVALID, |parent| {
            trace::SpanId::from(parent.bits())
        }),
        parent_span_is_remote: span.parent_is_remote,
        span_kind: match span.kind {
            SpanKind::Request => trace::SpanKind::Server,
            _ => trace::SpanKind::Internal,
        },
        name: span.kind.name().into(),
        start_time: wall.at(span.start),
        end_time: wall.at(span.end),
        attributes: attributes(span.attributes, name),
        dropped_attributes_count: 0,
        events,
        links,
        status: match span.status {
            Status::Unset => trace::Status::Unset,
            Status::Error(why) => trace::Status::error(why),
        },
        instrumentation_scope: scope(),
    }
}

/// A trace of its own: nothing else is part of it.
pub(super) fn link(link: &Link, wall: &Wall, name: Name<'_>) -> SpanData {
    let id = TraceId::new(rand::random());
    let mut attributes = vec![KeyValue::new("innkeeper.gateway", name(link.gateway))];
    if let Some(why) = &link.lost {
        attributes.push(KeyValue::new("innkeeper.lost", why.to_string()));
    }
    SpanData {
        span_context: context(id, SpanId::new(rand::random())),
        parent_span_id: trace::SpanId::INVALID,
        parent_span_is_remote: false,
        span_kind: trace::SpanKind::Internal,
        name: "link".into(),
        start_time: wall.at(link.start),
        end_time: wall.at(link.end),
        attributes,
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: trace::Status::Unset,
        instrumentation_scope: scope(),
    }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope::builder(SERVICE)
        .with_version(env!("CARGO_PKG_VERSION"))
        .build()
}

/// What is sent is sampled: whoever gets it is not to ask again.
fn context(trace: TraceId, span: SpanId) -> SpanContext {
    SpanContext::new(
        trace::TraceId::from(trace.bits()),
        trace::SpanId::from(span.bits()),
        TraceFlags::SAMPLED,
        false,
        TraceState::default(),
    )
}

fn attributes(ours: Vec<Attribute>, name: Name<'_>) -> Vec<KeyValue> {
    ours.into_iter()
        .map(|(key, of)| KeyValue::new(key, value(of, name)))
        .collect()
}

fn value(of: Value, name: Name<'_>) -> opentelemetry::Value {
    match of {
        Value::Word(word) => word.into(),
        Value::Text(text) => text.into(),
        Value::Int(number) => number.into(),
        Value::Float(number) => number.into(),
        Value::Bool(truth) => truth.into(),
        Value::Words(words) => {
            opentelemetry::Value::Array(Array::String(words.into_iter().map(Into::into).collect()))
        }
        Value::Node(node) => name(node).into(),
        Value::Room(room) => room.to_string().into(),
    }
}
