//! What events add up to.

use std::collections::BTreeSet;

use observe::{
    Event, Exposition, GatewayLevels, LinkEnd, LinkedWorker, Listener, Metrics, Moved, NodeEvent, NodeLevels,
    NodeWhat, Pool, Recorder, RoomHistory, RoomLevel, RoomWhat, Roster, Sampling, StayWhat, Tables, Told,
    Trace, WorkerLevels, outcomes,
};
use room::{
    AttemptError, Failure, Finish, Generation, Happening, HostCounters, NodeId, Outcome, PhaseKind, Proof,
    Role, Span, StayPhase,
};

use crate::kit::{self, GATEWAY, PREFILL, at};

/// Those of a node where nothing has happened yet.
fn fresh() -> Metrics {
    Metrics::new(None, Roster::default())
}

/// Tells all of a room's events, in order.
fn tell(metrics: &Metrics, history: &RoomHistory) {
    let mut again = RoomHistory::new(history.facts().clone());
    for (place, event) in history.events().iter().enumerate() {
        let gap = if place == 0 { None } else { again.push(event) };
        metrics.told(&Told::Room {
            event,
            facts: history.facts(),
            state: again.state(),
            gap,
        });
    }
}

fn node(metrics: &Metrics, what: NodeWhat) {
    let event = NodeEvent { at: at(1), what };
    metrics.told(&Told::Node(&event));
}

fn linked(metrics: &Metrics, node_id: NodeId, name: &str) {
    let what = NodeWhat::WorkerLinked {
        worker: node_id,
        name: name.into(),
        role: Role::Decode,
        blocks: 10,
        block_tokens: 16,
        slots: 4,
    };
    node(metrics, what);
}

fn plain(metrics: &Metrics, levels: &NodeLevels) -> String {
    metrics.text(levels, Exposition::Plain)
}

#[track_caller]
fn check(text: &str, line: &str) {
    assert!(text.lines().any(|l| l == line), "no line {line} in:\n{text}");
}

/// The value of a series that is there.
fn value(text: &str, series: &str) -> f64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in:\n{text}"))
        .parse()
        .expect("a number")
}

fn worker(held: usize, orphans: usize) -> LinkedWorker {
    LinkedWorker {
        name: "decode-0".to_owned(),
        role: Role::Decode,
        pool: Pool {
            free: 5,
            cached: 3,
            leased: 1,
            quarantined: 1,
            slots: 4,
            slots_used: 1,
        },
        backlog_tokens: 0,
        draining: false,
        transport: "ucx-tcp".to_owned(),
        bytes_in: 7,
        bytes_out: 0,
        promised_blocks: 0,
        leases: held,
        orphans,
        link: None,
    }
}

fn gateway(rooms: usize, tables: Tables, workers: Vec<LinkedWorker>) -> NodeLevels {
    let room = RoomLevel {
        phase: PhaseKind::Pulling,
        in_phase: Span::from_millis(1_500),
        overdue: Span::default(),
    };
    NodeLevels {
        gateway: Some(GatewayLevels {
            rooms: vec![room; rooms],
            tables,
            workers,
            ..GatewayLevels::default()
        }),
        ..NodeLevels::default()
    }
}

#[test]
fn a_room_is_counted_by_its_outcome_and_timed_by_its_phases() {
    let metrics = fresh();
    let stop = Outcome::Completed(Finish::Stop);
    tell(&metrics, &kit::ended(0, Some(1_200), stop, 1_400));
    let text = plain(&metrics, &NodeLevels::default());
    check(&text, "innkeeper_rooms_opened_total 1");
    check(
        &text,
        r#"innkeeper_outcomes_total{outcome="completed",reason="stop"} 1"#,
    );
    // From its arrival, which is 100 ms before its opening.
    check(&text, "innkeeper_time_to_first_token_seconds_sum 0.3");
    check(&text, r#"innkeeper_room_seconds_sum{outcome="completed"} 0.5"#);
    check(&text, r#"innkeeper_phase_seconds_sum{phase="queued"} 0.01"#);
    check(&text, r#"innkeeper_phase_seconds_count{phase="draining"} 1"#);
    check(&text, "innkeeper_answer_tokens_total 1");
    check(&text, "innkeeper_prompt_tokens_total 10");
    check(&text, "innkeeper_prepare_seconds_sum 0.1");
}

#[test]
fn every_outcome_is_a_series_before_it_happens() {
    let text = plain(&fresh(), &NodeLevels::default());
    for outcome in outcomes() {
        let (outcome, reason) = observe::labels::outcome(outcome);
        check(
            &text,
            &format!(r#"innkeeper_outcomes_total{{outcome="{outcome}",reason="{reason}"}} 0"#),
        );
    }
}

/// Whoever adds an outcome adds it to the list, too: those that are not in it are known by name.
#[test]
fn the_list_of_outcomes_lacks_only_what_cannot_be() {
    let listed: BTreeSet<_> = outcomes().into_iter().map(observe::labels::outcome).collect();
    let all: BTreeSet<_> = crate::labels::outcomes()
        .into_iter()
        .map(observe::labels::outcome)
        .collect();
    assert!(listed.is_subset(&all));
    let lacking: Vec<_> = all.difference(&listed).map(|(_, reason)| *reason).collect();
    assert_eq!(
        lacking,
        [
            "draining",
            "ended",
            "attempts_no_progress_draining",
            "attempts_no_progress_ended",
            "attempts_no_progress_queued"
        ]
    );
}

/// Exemplars name traces that somebody can find: those that are kept.
#[test]
fn an_exemplar_names_a_trace_that_is_kept() {
    let trace = r##"# {trace_id="00000000000000000000000000000abc"}"##;
    let sampling = Sampling {
        ratio: 0.0,
        slow_first_token: Span::from_millis(250),
        slow_total: Span::from_millis(60_000),
    };
    let exemplars = |flags, first_ms, outcome| {
        let metrics = Metrics::new(Some(sampling), Roster::default());
        tell(
            &metrics,
            &kit::ended(flags, Some(first_ms), outcome, first_ms + 10),
        );
        let text = metrics.text(&NodeLevels::default(), Exposition::OpenMetrics);
        assert!(text.ends_with("# EOF\n"));
        let of = |family: &str| {
            let mut lines = text.lines().filter(|line| line.starts_with(family));
            lines.any(|line| line.contains(trace))
        };
        [
            of("innkeeper_time_to_first_token_seconds_bucket"),
            of("innkeeper_room_seconds_bucket"),
            of("innkeeper_phase_seconds_bucket"),
        ]
    };
    let (stop, lost) = (
        Outcome::Completed(Finish::Stop),
        Outcome::Failed(Failure::Attempts(AttemptError::WorkerLost)),
    );
    assert_eq!(exemplars(0, 1_100, stop), [false, false, false]);
    assert_eq!(exemplars(Trace::SAMPLED, 1_100, stop), [true, true, true]);
    assert_eq!(
        exemplars(0, 1_200, stop),
        [true, false, false],
        "its first token was slow"
    );
    assert_eq!(exemplars(0, 1_100, lost), [false, true, false], "it failed");
    // The older format has none.
    let metrics = fresh();
    tell(&metrics, &kit::ended(0, Some(1_100), stop, 1_200));
    assert!(!plain(&metrics, &NodeLevels::default()).contains("trace_id"));
}

#[test]
fn who_asks_for_openmetrics_gets_it() {
    let prometheus = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    assert_eq!(Exposition::accepted(prometheus), Exposition::OpenMetrics);
    assert_eq!(Exposition::accepted("*/*"), Exposition::Plain);
    assert_eq!(Exposition::accepted(""), Exposition::Plain);
}

#[test]
fn what_is_blamed_on_a_worker_is_a_series_from_its_first_link_on() {
    let metrics = fresh();
    linked(&metrics, PREFILL, "prefill-0");
    let before = plain(&metrics, &NodeLevels::default());
    check(&before, r#"innkeeper_fences_total{worker="prefill-0"} 0"#);
    let stuck = r#"innkeeper_attempts_failed_total{worker="prefill-0",reason="no_progress_prefilling"}"#;
    check(&before, &format!("{stuck} 0"));
    let mut history = kit::ended(0, None, Outcome::Expired(PhaseKind::Prefilling), 1_100);
    let failed = Happening::AttemptFailed {
        worker: PREFILL,
        error: AttemptError::NoProgress(PhaseKind::Prefilling),
        retried: true,
    };
    let of = Generation::FIRST;
    let returned = Happening::LegReturned {
        worker: PREFILL,
        of,
        by: Proof::NotHeld,
    };
    for happening in [failed, Happening::Fenced { worker: PREFILL, of }, returned] {
        history.push(&kit::event(1_050, 1, RoomWhat::Room(happening)));
    }
    tell(&metrics, &history);
    let text = plain(&metrics, &NodeLevels::default());
    check(&text, &format!("{stuck} 1"));
    check(
        &text,
        r#"innkeeper_attempts_retried_total{reason="no_progress_prefilling"} 1"#,
    );
    check(&text, r#"innkeeper_fences_total{worker="prefill-0"} 1"#);
    check(
        &text,
        r#"innkeeper_leases_returned_total{worker="prefill-0",proof="not_held"} 1"#,
    );
}

#[test]
fn kv_is_counted_by_pair_and_transport_and_neither_without_end() {
    let metrics = fresh();
    let history = kit::ended(0, Some(1_100), Outcome::Completed(Finish::Stop), 1_200);
    for n in 0..1_000 {
        linked(&metrics, NodeId(n), &format!("w{n}"));
        let what = RoomWhat::Moved(Moved {
            from: NodeId(n),
            to: NodeId(0),
            bytes: 10,
            descriptors: 2,
            lasted: Span::from_millis(3),
            transport: format!("t{n}").into(),
        });
        let event = kit::event(1_000, 1, what);
        metrics.told(&Told::Room {
            event: &event,
            facts: history.facts(),
            state: history.state(),
            gap: None,
        });
    }
    let text = plain(&metrics, &NodeLevels::default());
    check(
        &text,
        r#"innkeeper_kv_pulled_bytes_total{from="w5",to="w0",transport="t5"} 10"#,
    );
    check(
        &text,
        r#"innkeeper_kv_descriptors_total{from="w5",to="w0",transport="t5"} 2"#,
    );
    let pulls = text
        .lines()
        .filter(|line| line.starts_with("innkeeper_kv_pulls_total{"));
    assert!(pulls.clone().count() <= 256 + 16 + 1);
    let sum: f64 = pulls
        .map(|line| {
            line.rsplit_once(' ')
                .expect("a value")
                .1
                .parse::<f64>()
                .expect("a number")
        })
        .sum();
    assert!((sum - 1_000.0).abs() < 0.1, "none is lost: {sum}");
    check(&text, r#"innkeeper_links_total{worker="other"} 744"#);
}

#[test]
fn the_counts_of_hosts_are_increases_of_workers_whatever_their_incarnation() {
    let metrics = fresh();
    let counted = |node_id, healed_by_digest, stale| {
        let counters = HostCounters {
            healed_by_digest,
            stale,
            ..HostCounters::default()
        };
        let name = "decode-0".into();
        let worker = NodeId(node_id);
        node(
            &metrics,
            NodeWhat::Counted {
                worker,
                name,
                counters,
            },
        );
    };
    counted(1, 1, 0);
    counted(1, 3, 5);
    // A new incarnation counts from zero.
    counted(2, 1, 0);
    let text = plain(&metrics, &NodeLevels::default());
    check(
        &text,
        r#"innkeeper_worker_digests_healed_total{worker="decode-0"} 4"#,
    );
    check(
        &text,
        r#"innkeeper_worker_messages_without_effect_total{worker="decode-0",reason="stale"} 5"#,
    );
}

/// A worker that made a step, has a gateway, and told of a stay.
fn busy_worker() -> Metrics {
    let metrics = fresh();
    let name = || "prefill-0".into();
    let (worker, gateway) = (PREFILL, GATEWAY);
    node(&metrics, NodeWhat::WorkerStarted { name: name(), worker });
    node(
        &metrics,
        NodeWhat::Step {
            worker,
            batch: 3,
            tokens: 40,
            lasted: Span::from_millis(20),
        },
    );
    node(
        &metrics,
        NodeWhat::GatewayLinked {
            name: name(),
            gateway,
            gateways: 1,
        },
    );
    let history = kit::stay();
    for what in [
        StayWhat::PromptStarted { cached: 4 },
        StayWhat::Sampled { count: 2 },
        StayWhat::ReadDone {
            bytes: 100,
            descriptors: 4,
            transport: "ucx-tcp".into(),
            lasted: Span::from_millis(7),
        },
    ] {
        let event = kit::at_worker(5, what);
        metrics.told(&Told::Stay {
            event: &event,
            facts: Some(history.facts()),
            gap: None,
        });
    }
    metrics
}

/// What that worker's node sees at the moment of the question.
fn busy_levels() -> NodeLevels {
    NodeLevels {
        workers: vec![WorkerLevels {
            name: "prefill-0".to_owned(),
            mailbox: 3,
            stays: vec![(StayPhase::Decoding, Span::from_millis(2_000))],
            pool: Some(worker(0, 0).pool),
        }],
        ..NodeLevels::default()
    }
}

#[test]
fn steps_and_stays_are_told_by_worker() {
    let text = plain(&busy_worker(), &busy_levels());
    for (family, labels, value) in [
        ("batch_sequences_sum", "", "3.0"),
        ("step_tokens_sum", "", "40.0"),
        ("step_seconds_sum", "", "0.02"),
        ("gateways", "", "1"),
        ("prompt_tokens_total", "", "10"),
        ("prompt_cached_tokens_total", "", "4"),
        ("mailbox_messages", "", "3"),
        ("kv_read_bytes_total", r#",transport="ucx-tcp""#, "100"),
        ("stays", r#",phase="decoding""#, "1"),
        ("stay_oldest_seconds", r#",phase="decoding""#, "2.0"),
        ("kv_blocks", r#",state="quarantined""#, "1"),
    ] {
        check(
            &text,
            &format!(r#"innkeeper_worker_{family}{{worker="prefill-0"{labels}}} {value}"#),
        );
    }
}

#[test]
fn a_worker_that_lost_its_gateway_has_none() {
    let metrics = busy_worker();
    node(
        &metrics,
        NodeWhat::GatewayUnlinked {
            name: "prefill-0".into(),
            gateway: GATEWAY,
            gateways: 0,
            end: LinkEnd::Loss,
            why: "silent".into(),
        },
    );
    check(
        &plain(&metrics, &busy_levels()),
        r#"innkeeper_worker_gateways{worker="prefill-0"} 0"#,
    );
}

/// Rooms open = leases held = histories open; what is forgotten shows as a difference.
#[test]
fn what_is_forgotten_is_a_difference() {
    let metrics = fresh();
    let difference = |levels: &NodeLevels, between: &str| {
        let series = format!(r#"innkeeper_conservation_difference{{between="{between}"}}"#);
        value(&plain(&metrics, levels), &series)
    };
    let all = [
        "rooms_and_histories",
        "rooms_and_owners",
        "leases_and_legs",
        "leases_and_rooms",
        "promises_without_rooms",
    ];
    let quiet = gateway(0, Tables::default(), vec![worker(0, 0)]);
    for between in all {
        assert_eq!(difference(&quiet, between), 0.0, "{between}");
    }
    tell(
        &metrics,
        &kit::ended(0, Some(1_100), Outcome::Completed(Finish::Stop), 1_200),
    );
    for between in all {
        assert_eq!(difference(&quiet, between), 0.0, "{between} after a room");
    }
    // One that is under way.
    let facts = kit::facts(0);
    let opening = RoomHistory::opening(&facts);
    let history = RoomHistory::new(facts.clone());
    metrics.told(&Told::Room {
        event: &opening,
        facts: &facts,
        state: history.state(),
        gap: None,
    });
    let tables = Tables {
        addressed: 1,
        legs: 1,
        timers: 1,
        promises: 1,
    };
    let busy = gateway(1, tables, vec![worker(1, 0)]);
    for between in all {
        assert_eq!(difference(&busy, between), 0.0, "{between} while one is open");
    }
    let text = plain(&metrics, &busy);
    check(&text, r#"innkeeper_rooms{phase="pulling"} 1"#);
    check(&text, r#"innkeeper_room_oldest_seconds{phase="pulling"} 1.5"#);
    check(
        &text,
        r#"innkeeper_kv_blocks{worker="decode-0",state="leased"} 1"#,
    );
    // It is gone from view, and never ended; its lease, its promise and its mail's address are still there.
    let forgotten = gateway(0, tables, vec![worker(1, 1)]);
    assert_eq!(difference(&forgotten, "rooms_and_histories"), -1.0);
    assert_eq!(difference(&forgotten, "rooms_and_owners"), -1.0);
    assert_eq!(difference(&forgotten, "leases_and_legs"), 0.0);
    assert_eq!(difference(&forgotten, "leases_and_rooms"), 1.0);
    assert_eq!(difference(&forgotten, "promises_without_rooms"), 1.0);
}

/// Beyond the bound of names several workers are one: added up, and not said twice.
#[test]
fn gauges_of_more_workers_than_have_names_are_added_up() {
    let metrics = fresh();
    let workers = (0..300).map(|n| LinkedWorker {
        name: format!("w{n}"),
        ..worker(2, 0)
    });
    let text = plain(&metrics, &gateway(0, Tables::default(), workers.collect()));
    check(&text, r#"innkeeper_leases{worker="other"} 88"#);
    check(&text, r#"innkeeper_workers{role="decode"} 300"#);
    let series: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let names: BTreeSet<_> = series
        .iter()
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names.len(), series.len(), "a series is there twice");
}

/// A recorder and its metrics have one roster: a worker that one of them met has its name in both.
#[test]
fn a_recorders_roster_is_that_of_its_metrics() {
    let roster = Roster::default();
    let metrics = std::sync::Arc::new(Metrics::new(None, roster.clone()));
    let listener = std::sync::Arc::clone(&metrics) as std::sync::Arc<dyn Listener>;
    let recorder = Recorder::with_roster(roster, vec![listener], None, Sampling::default());
    let event = |what| NodeEvent { at: at(1), what };
    recorder.node(&event(NodeWhat::WorkerLeaving {
        worker: PREFILL,
        name: "prefill-0".into(),
        why: "it was told to stop".into(),
    }));
    recorder.node(&event(NodeWhat::Fencing {
        worker: PREFILL,
        why: "it did not prove a lease returned".into(),
    }));
    assert_eq!(recorder.roster().name(PREFILL).as_deref(), Some("prefill-0"));
    check(
        &plain(&metrics, &NodeLevels::default()),
        r#"innkeeper_workers_cut_off_total{worker="prefill-0"} 1"#,
    );
}

/// It is what a recorder asks of its listeners.
#[test]
fn events_reach_it_through_a_recorder() {
    let metrics = std::sync::Arc::new(fresh());
    let listener = std::sync::Arc::clone(&metrics) as std::sync::Arc<dyn Listener>;
    let recorder = Recorder::new(vec![listener], None, Sampling::default());
    let event = NodeEvent {
        at: at(1),
        what: NodeWhat::MailDropped { seq: 1 },
    };
    recorder.node(&event);
    assert!(matches!(Told::Node(&event).event(), Event::Node(_)));
    check(
        &plain(&metrics, &NodeLevels::default()),
        "innkeeper_mail_dropped_total 1",
    );
}
