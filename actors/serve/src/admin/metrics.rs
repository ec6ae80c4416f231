//! Metrics in Prometheus' text format, made at the moment they are asked for from the same views that people see.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use room::PhaseKind;
use runtime::{GatewayHandle, WorkerState};

/// A text being written: families of samples.
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let escaped = |value: &str| {
            value
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n")
        };
        let labels: Vec<String> = labels
            .iter()
            .map(|(key, value)| format!("{key}=\"{}\"", escaped(value)))
            .collect();
        let labels = if labels.is_empty() {
            String::new()
        } else {
            format!("{{{}}}", labels.join(","))
        };
        // As above.
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }
}

/// All of a gateway's metrics.
pub(super) fn text(gateway: &GatewayHandle) -> String {
    let mut text = Text(String::new());
    rooms(&mut text, gateway);
    counts(&mut text, gateway);
    workers(&mut text, &gateway.workers());
    text.0
}

fn rooms(text: &mut Text, gateway: &GatewayHandle) {
    let now = gateway.now();
    let mut phases: BTreeMap<PhaseKind, (u64, u64)> =
        PhaseKind::ALL.iter().map(|phase| (*phase, (0, 0))).collect();
    phases.remove(&PhaseKind::Ended);
    for view in gateway.rooms() {
        let (count, oldest_ms) = phases.entry(view.phase).or_default();
        *count += 1;
        *oldest_ms = (*oldest_ms).max((now - view.since).as_millis());
    }
    text.family("innkeeper_rooms", "gauge", "Rooms open, by phase.");
    for (phase, (count, _)) in &phases {
        text.sample("innkeeper_rooms", &[("phase", phase.name())], count);
    }
    text.family(
        "innkeeper_room_oldest_seconds",
        "gauge",
        "Longest time that a room has been in this phase.",
    );
    for (phase, (_, oldest_ms)) in &phases {
        text.sample(
            "innkeeper_room_oldest_seconds",
            &[("phase", phase.name())],
            seconds(*oldest_ms),
        );
    }
    text.family("innkeeper_rooms_waiting", "gauge", "Rooms that wait for credit.");
    text.sample("innkeeper_rooms_waiting", &[], gateway.waiting());
}

fn counts(text: &mut Text, gateway: &GatewayHandle) {
    let counts = gateway.counts();
    text.family("innkeeper_rooms_opened_total", "counter", "Rooms opened.");
    text.sample("innkeeper_rooms_opened_total", &[], counts.opened);
    text.family(
        "innkeeper_outcomes_total",
        "counter",
        "Rooms by their one outcome.",
    );
    for ((outcome, reason), count) in &counts.outcomes {
        text.sample(
            "innkeeper_outcomes_total",
            &[("outcome", outcome), ("reason", reason)],
            count,
        );
    }
    for (name, help, value) in [
        (
            "innkeeper_attempts_retried_total",
            "Attempts that failed and were followed by another.",
            counts.retries,
        ),
        (
            "innkeeper_pauses_total",
            "Times that an answer was paused because its client had not read what there was.",
            counts.pauses,
        ),
        (
            "innkeeper_drains_overdue_total",
            "Leases not proven returned in time.",
            counts.drains_overdue,
        ),
        (
            "innkeeper_fences_total",
            "Workers fenced for a lease they did not return.",
            counts.fences,
        ),
        (
            "innkeeper_stale_inputs_total",
            "What rooms were told that changed nothing: stale, out of turn, or repeated.",
            counts.stale_inputs,
        ),
        (
            "innkeeper_rooms_buried_total",
            "Rooms whose owners died again and again, until their workers were fenced.",
            counts.buried,
        ),
    ] {
        text.family(name, "counter", help);
        text.sample(name, &[], value);
    }
    pulled(text, &counts.pulled);
}

fn pulled(text: &mut Text, by_transport: &BTreeMap<String, (u64, u64, u64)>) {
    type Part = fn(&(u64, u64, u64)) -> u64;
    let parts: [(&str, &str, Part); 3] = [
        (
            "innkeeper_kv_pulled_bytes_total",
            "KV bytes moved to decode workers.",
            |total| total.0,
        ),
        (
            "innkeeper_kv_descriptors_total",
            "Contiguous pieces they were moved in.",
            |total| total.1,
        ),
        (
            "innkeeper_kv_pulls_total",
            "Pulls that brought everything.",
            |total| total.2,
        ),
    ];
    for (name, help, part) in parts {
        text.family(name, "counter", help);
        for (transport, total) in by_transport {
            text.sample(name, &[("transport", transport)], part(total));
        }
    }
}

fn workers(text: &mut Text, workers: &[WorkerState]) {
    text.family(
        "innkeeper_kv_blocks",
        "gauge",
        "Blocks of a worker's pool, by state.",
    );
    for worker in workers {
        let stats = &worker.peer.stats;
        for (state, blocks) in [
            ("free", stats.blocks_free),
            ("cached", stats.blocks_cached),
            ("leased", stats.blocks_leased),
            ("quarantined", stats.blocks_quarantined),
        ] {
            text.sample(
                "innkeeper_kv_blocks",
                &[("worker", &worker.peer.name), ("state", state)],
                blocks,
            );
        }
    }
    type Part = fn(&WorkerState) -> u64;
    let parts: [(&str, &str, &str, Part); 6] = [
        ("innkeeper_slots", "gauge", "Batch slots of a worker.", |w| {
            u64::from(w.peer.stats.slots_total)
        }),
        ("innkeeper_slots_used", "gauge", "Of those, taken.", |w| {
            u64::from(w.peer.stats.slots_used)
        }),
        (
            "innkeeper_prefill_backlog_tokens",
            "gauge",
            "Prompt tokens accepted and not yet computed.",
            |w| w.peer.stats.prefill_backlog_tokens,
        ),
        (
            "innkeeper_leases",
            "gauge",
            "Attempts of this gateway that a worker holds.",
            |w| w.peer.held.len() as u64,
        ),
        (
            "innkeeper_worker_kv_in_bytes_total",
            "counter",
            "KV bytes that a worker fetched.",
            |w| w.peer.stats.kv_bytes_in,
        ),
        (
            "innkeeper_worker_kv_out_bytes_total",
            "counter",
            "KV bytes that a worker gave.",
            |w| w.peer.stats.kv_bytes_out,
        ),
    ];
    for (name, kind, help, part) in parts {
        text.family(name, kind, help);
        for worker in workers {
            let labels = [
                ("worker", worker.peer.name.as_str()),
                ("transport", worker.peer.stats.kv_transport.as_str()),
            ];
            text.sample(name, &labels, part(worker));
        }
    }
}

fn seconds(millis: u64) -> String {
    format!("{}.{:03}", millis / 1_000, millis % 1_000)
}
