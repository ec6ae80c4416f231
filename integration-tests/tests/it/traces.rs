//! Traces of real processes, as a collector that is not ours understands them: over gRPC and over HTTP, of a stream that migrated and of a
//! pull that was aborted. Every span is there, with the right parent and times.

use std::collections::{BTreeMap, BTreeSet};

use integration_tests::{Cluster, Collector, Ports, Signal, SpanSeen, Stream, answer, completion};
use serde_json::json;

use crate::prompts::check_whole;

/// Clocks of processes are read one after the other.
const SLACK_NS: u64 = 1_000_000;

/// The spans of one trace, found by its request's.
struct TraceSeen {
    spans: Vec<SpanSeen>,
    request: SpanSeen,
}

impl TraceSeen {
    /// The trace whose request says so, if all of these spans have come: names, and from how many nodes.
    fn find(
        collector: &Collector,
        (attribute, value): (&str, &str),
        wanted: &[(&str, usize)],
    ) -> Option<Self> {
        let all = collector.spans();
        let is_it = |span: &&SpanSeen| {
            span.name == "request" && span.attributes.get(attribute).is_some_and(|said| said == value)
        };
        let request = all.iter().find(is_it)?.clone();
        let spans: Vec<SpanSeen> = all
            .into_iter()
            .filter(|span| span.trace == request.trace)
            .collect();
        let count = |name: &str| spans.iter().filter(|span| span.name == name).count();
        wanted
            .iter()
            .all(|(name, least)| count(name) >= *least)
            .then_some(Self { spans, request })
    }

    fn all(&self, name: &str) -> Vec<&SpanSeen> {
        self.spans.iter().filter(|span| span.name == name).collect()
    }

    fn one(&self, name: &str) -> &SpanSeen {
        let all = self.all(name);
        assert_eq!(all.len(), 1, "{name}: {all:#?}");
        all[0]
    }

    /// What Jaeger's model needs of every trace: one root, unique ids, parents that are there, kinds, times, and who said it.
    fn check(&self) {
        let by_id: BTreeMap<&str, &SpanSeen> =
            self.spans.iter().map(|span| (span.id.as_str(), span)).collect();
        assert_eq!(by_id.len(), self.spans.len(), "ids are unique");
        for span in &self.spans {
            assert_eq!(span.resource["service.name"], "Str(innkeeper)");
            assert!(span.resource.contains_key("innkeeper.role"), "{span:#?}");
            let kind = if span.name == "request" {
                "SPAN_KIND_SERVER"
            } else {
                "SPAN_KIND_INTERNAL"
            };
            assert_eq!(span.kind, kind, "{span:#?}");
            assert!(span.start_ns > 0 && span.start_ns <= span.end_ns, "{span:#?}");
            let inside = span.start_ns..=span.end_ns;
            assert!(span.events.iter().all(|(_, at)| inside.contains(at)), "{span:#?}");
            for link in &span.links {
                assert!(by_id.contains_key(link.as_str()), "{span:#?}");
            }
            if span.id == self.request.id {
                assert_eq!(span.parent, "", "this client has no span");
                continue;
            }
            let parent = by_id.get(span.parent.as_str());
            let parent = parent.unwrap_or_else(|| panic!("no parent: {span:#?}"));
            let allowed: &[&str] = match span.name.as_str() {
                "prepare" | "attempt" | "drain" => &["request"],
                "render" | "tokenise" => &["prepare"],
                "compute_prompt" => &["prefill"],
                "read" => &["pull"],
                _ => &["attempt"],
            };
            assert!(
                allowed.contains(&parent.name.as_str()),
                "{} below {}",
                span.name,
                parent.name
            );
            assert!(
                parent.start_ns <= span.start_ns + SLACK_NS,
                "{span:#?} before {parent:#?}"
            );
            assert!(
                span.start_ns <= parent.end_ns + SLACK_NS,
                "{span:#?} after {parent:#?}"
            );
        }
        self.check_coverage();
    }

    /// The time from arrival to the first token, and to the end, is explained: at least 98 % of it is in a named span.
    fn check_coverage(&self) {
        let from = self.request.start_ns;
        let first = self.request.events.iter().find(|(name, _)| name == "first_token");
        for to in [first.map(|(_, at)| *at), Some(self.request.end_ns)]
            .into_iter()
            .flatten()
        {
            let own = |span: &&SpanSeen| !matches!(span.name.as_str(), "request" | "attempt");
            let mut parts: Vec<(u64, u64)> = self
                .spans
                .iter()
                .filter(own)
                .map(|span| (span.start_ns.clamp(from, to), span.end_ns.clamp(from, to)))
                .collect();
            parts.sort_unstable();
            let (mut covered, mut reached) = (0, from);
            for (start, end) in parts {
                covered += end.saturating_sub(start.max(reached));
                reached = reached.max(end);
            }
            assert!(covered * 100 >= (to - from) * 98, "{covered} of {} ns", to - from);
        }
    }

    /// The names of the nodes that say spans of this name.
    fn nodes(&self, name: &str) -> BTreeSet<&str> {
        let of = |span: &&SpanSeen| span.name == name;
        self.spans
            .iter()
            .filter(of)
            .map(|span| span.resource["service.instance.id"].as_str())
            .collect()
    }
}

/// Nothing is drawn: the trace is kept because of what became of it, and its workers are asked for theirs.
#[tokio::test]
async fn traces_of_a_migrated_stream() {
    let collector = Collector::start();
    let endpoint = format!("tracing.endpoint=\"{}\"", collector.grpc());
    let sets = [endpoint.as_str(), "tracing.protocol=grpc", "tracing.sample=0.0"];
    let mut cluster = Cluster::apart(1, 2, &sets).await;
    let request = completion("A guest who moves", 60, 0.0, 0);
    let mut stream = Stream::open(cluster.ports().http, &request).await.unwrap();
    stream.read_tokens(5).await.unwrap();
    let rooms = cluster.rooms().await;
    let mut holders = rooms[0].held_by.iter().map(|holder| holder.worker.clone());
    let victim = holders.find(|name| name.starts_with("decode")).unwrap();
    cluster.process(&victim).signal(Signal::Kill);
    check_whole(&[stream.finish().await.unwrap()], 60);
    cluster.all_back(2).await;
    let wanted = [
        ("attempt", 2),
        ("compute_prompt", 2),
        ("generate", 1),
        ("read", 1),
        ("publish", 2),
    ];
    let found = || async { TraceSeen::find(&collector, ("innkeeper.attempts", "Int(2)"), &wanted) };
    let (trace, after) = cluster
        .until("the collector has the migrated stream", found)
        .await;
    println!(
        "gRPC: {} spans of a migrated stream after {after:?}",
        trace.spans.len()
    );
    trace.check();
    assert_eq!(trace.request.attributes["innkeeper.kept"], "Str(migrated)");
    assert_eq!(trace.request.attributes["innkeeper.outcome"], "Str(completed)");
    assert_eq!(trace.request.attributes["gen_ai.usage.output_tokens"], "Int(60)");
    for name in ["queue", "reserve", "prefill", "pull", "decode"] {
        assert_eq!(trace.all(name).len(), 2, "{name}");
    }
    let attempts = trace.all("attempt");
    let replaced: Vec<&&SpanSeen> = attempts
        .iter()
        .filter(|span| span.status == "STATUS_CODE_ERROR")
        .collect();
    let [first] = replaced[..] else {
        panic!("{attempts:#?}")
    };
    let second = attempts.iter().find(|span| span.id != first.id).unwrap();
    assert_eq!(second.links, std::slice::from_ref(&first.id));
    let owners = trace.nodes("request");
    assert!(
        owners.len() == 1 && owners.iter().all(|name| name.starts_with("Str(gateway-")),
        "{owners:?}"
    );
    assert_eq!(trace.nodes("compute_prompt"), BTreeSet::from(["Str(prefill-0)"]));
    let survivor = if victim == "decode-0" {
        "Str(decode-1)"
    } else {
        "Str(decode-0)"
    };
    assert_eq!(trace.nodes("generate"), BTreeSet::from([survivor]));
    check_start(
        &collector,
        &["fetch_model", "open_model", "load_ucx", "load_model", "link"],
    );
}

/// The start of every node is told too.
fn check_start(collector: &Collector, names: &[&str]) {
    let spans = collector.spans();
    for name in names {
        let found = spans.iter().find(|span| span.name == *name);
        let span = found.unwrap_or_else(|| panic!("no span {name}"));
        assert!(span.start_ns <= span.end_ns, "{span:#?}");
    }
}

/// All is drawn. The client leaves while the KV is on its way.
#[tokio::test]
async fn traces_of_an_aborted_pull() {
    let collector = Collector::start();
    let endpoint = format!("tracing.endpoint=\"{}\"", collector.http());
    let sets = [endpoint.as_str(), "tracing.protocol=http", "tracing.sample=1.0"];
    let cluster = Cluster::apart(1, 1, &sets).await;
    cluster
        .fault("decode-0", &json!({ "reads": { "does": "hold_end" } }))
        .await;
    let request = completion("A guest who leaves in the doorway", 60, 0.0, 0);
    let stream = Stream::open(cluster.ports().http, &request).await.unwrap();
    let pulling = || async {
        let rooms = cluster.rooms().await;
        rooms.iter().any(|room| room.phase == "pulling").then_some(())
    };
    cluster.until("its KV is being pulled", pulling).await;
    drop(stream);
    let draining = || async {
        let rooms = cluster.rooms().await;
        rooms.iter().all(|room| room.phase == "draining").then_some(())
    };
    cluster.until("its outcome is fixed", draining).await;
    cluster
        .fault("decode-0", &json!({ "reads": { "does": "pass" } }))
        .await;
    cluster.all_back(2).await;
    let wanted = [
        ("drain", 1),
        ("compute_prompt", 1),
        ("publish", 1),
        ("read", 1),
        ("closing", 1),
    ];
    let found = || async { TraceSeen::find(&collector, ("innkeeper.outcome", "Str(aborted)"), &wanted) };
    let (trace, after) = cluster.until("the collector has the aborted pull", found).await;
    println!(
        "HTTP: {} spans of an aborted pull after {after:?}",
        trace.spans.len()
    );
    trace.check();
    assert_eq!(trace.request.attributes["innkeeper.kept"], "Str(head)");
    assert_eq!(trace.request.attributes["innkeeper.reason"], "Str(client_gone)");
    assert_eq!(trace.request.attributes["innkeeper.ended_in"], "Str(pulling)");
    for name in [
        "prepare", "tokenise", "attempt", "queue", "reserve", "prefill", "pull", "drain",
    ] {
        trace.one(name);
    }
    assert!(trace.all("decode").is_empty() && trace.all("generate").is_empty());
    assert_eq!(trace.nodes("read"), BTreeSet::from(["Str(decode-0)"]));
    assert_eq!(trace.nodes("publish"), BTreeSet::from(["Str(prefill-0)"]));
    let chunks = trace
        .one("prefill")
        .events
        .iter()
        .filter(|(name, _)| name == "chunk")
        .count();
    assert!(chunks > 0, "{:#?}", trace.one("prefill"));
}

/// What cannot be sent is lost and counted, and nobody who is served notices.
#[tokio::test]
async fn without_a_collector_traces_are_lost_and_answers_are_not() {
    let nobody = format!("tracing.endpoint=http://{}", Ports::free().http);
    let cluster = Cluster::apart(1, 1, &[nobody.as_str(), "tracing.sample=1.0"]).await;
    // A gateway's start is told in fewer spans than a request.
    let lost = || async {
        let lost = cluster.metrics().await.sum("innkeeper_traces_dropped_total", "");
        (lost >= 8.0).then_some(lost)
    };
    let request = completion("A guest whom nobody will remember", 20, 0.0, 0);
    check_whole(&[answer(cluster.ports().http, &request).await], 20);
    let (lost, after) = cluster.until("the request's spans are lost", lost).await;
    println!("{lost} spans are lost after {after:?}");
    cluster.all_back(2).await;
}
