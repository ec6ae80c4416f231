//! Every bound, on its legal side and beyond. Encoding and decoding hold to the same.

use wire::limits::{
    MAX_DEADLINE_MS, MAX_HELLO_BYTES, MAX_LEASE_MS, MAX_NAME_BYTES, MAX_NODE_BYTES, MAX_PAYLOAD_BYTES,
    MAX_REASON_BYTES, MAX_ROOMS, MAX_TOKENS, MAX_TOP_LOGPROBS,
};
use wire::{
    EncodeError, Hello, HelloAck, HelloRefused, HelloReply, Kept, Logprobs, Message, Order, Role, RoomKey,
    RoomTokens, Sampling, Ticket, ToGateway, ToWorker, TokenOut, VERSION, Work, WorkerStats,
};

use crate::samples::{hello, key, stats, ticket, token, work};

/// The field that is beyond its bound, or nothing.
fn check<M: Message>(message: &M, beyond: Option<&str>) {
    match (message.encode(VERSION), beyond) {
        (Ok(frame), None) => {
            M::decode_frame(VERSION, frame.as_bytes()).unwrap();
        }
        (Err(EncodeError::Invalid { invalid, .. }), Some(field)) => {
            assert!(
                invalid.to_string().starts_with(field),
                "{invalid} is not about {field}"
            );
        }
        (encoded, _) => panic!("{:?} for {beyond:?}", encoded.map(|frame| frame.kind())),
    }
}

fn reserve(change: impl FnOnce(&mut Work)) -> ToWorker {
    let mut work = work();
    change(&mut work);
    ToWorker::Reserve {
        key: key(),
        work,
        until: 1,
        deadline_ms: 1,
    }
}

fn sampling(change: impl FnOnce(&mut Sampling)) -> ToWorker {
    reserve(|work| change(&mut work.sampling))
}

#[test]
fn works() {
    check(&reserve(|work| work.tokens = vec![1; 131_072]), None);
    check(&reserve(|work| work.tokens = vec![1; MAX_TOKENS]), None);
    check(
        &reserve(|work| work.tokens = vec![1; MAX_TOKENS + 1]),
        Some("work.tokens"),
    );
    check(&reserve(|work| work.tokens.clear()), Some("work.tokens"));
    check(&reserve(|work| work.prompt_tokens = 4), None);
    check(
        &reserve(|work| work.prompt_tokens = 5),
        Some("work.prompt_tokens"),
    );
    check(
        &reserve(|work| work.prompt_tokens = 0),
        Some("work.prompt_tokens"),
    );
    check(&reserve(|work| work.prompt_tokens = 1), None);
    check(&reserve(|work| work.max_new = 0), Some("work.max_new"));
    check(&reserve(|work| work.max_new = 1), None);
    let most = u32::try_from(MAX_TOKENS).unwrap();
    check(&reserve(|work| work.max_new = most), None);
    check(&reserve(|work| work.max_new = most + 1), Some("work.max_new"));
    let until = |deadline_ms| ToWorker::Prefill {
        key: key(),
        work: work(),
        until: 1,
        deadline_ms,
    };
    check(&until(MAX_DEADLINE_MS), None);
    check(&until(MAX_DEADLINE_MS + 1), Some("deadline_ms"));
}

#[test]
fn sampling_parameters() {
    check(&sampling(|s| s.temperature = 0.0), None);
    check(&sampling(|s| s.temperature = -0.1), Some("sampling.temperature"));
    check(
        &sampling(|s| s.temperature = f32::NAN),
        Some("sampling.temperature"),
    );
    check(
        &sampling(|s| s.temperature = f32::INFINITY),
        Some("sampling.temperature"),
    );
    check(&sampling(|s| s.top_p = 1.1), Some("sampling.top_p"));
    check(&sampling(|s| s.min_p = f32::NAN), Some("sampling.min_p"));
    check(
        &sampling(|s| s.presence_penalty = f32::NAN),
        Some("sampling.presence_penalty"),
    );
    for legal in [-1e6, 1e6] {
        check(&sampling(|s| s.presence_penalty = legal), None);
        check(&sampling(|s| s.frequency_penalty = legal), None);
    }
    check(
        &sampling(|s| s.presence_penalty = 1.1e6),
        Some("sampling.presence_penalty"),
    );
    check(
        &sampling(|s| s.frequency_penalty = f32::NEG_INFINITY),
        Some("sampling.frequency_penalty"),
    );
    check(&sampling(|s| s.logprobs = Some(20)), None);
    check(&sampling(|s| s.logprobs = Some(21)), Some("sampling.logprobs"));
}

#[test]
fn leases() {
    let ack = |heartbeat_ms, lease_ms| {
        HelloReply::Accepted(HelloAck {
            version: VERSION,
            node: "gateway".into(),
            epoch: 1,
            heartbeat_ms,
            lease_ms,
        })
    };
    check(&ack(250, 251), None);
    check(&ack(250, 250), Some("hello_ack.heartbeat_ms"));
    check(&ack(250, 249), Some("hello_ack.heartbeat_ms"));
    check(&ack(0, 250), Some("hello_ack.heartbeat_ms"));
    check(&ack(1, MAX_LEASE_MS), None);
    check(&ack(1, MAX_LEASE_MS + 1), Some("hello_ack.lease_ms"));
}

#[test]
fn lists_of_rooms() {
    let keys = |n: usize| {
        let key = RoomKey {
            seq: 1,
            generation: 1,
        };
        vec![Kept { key, until: 1 }; n]
    };
    check(
        &ToWorker::Heartbeat {
            n: 1,
            open: keys(MAX_ROOMS),
        },
        None,
    );
    check(
        &ToWorker::Heartbeat {
            n: 1,
            open: keys(MAX_ROOMS + 1),
        },
        Some("heartbeat.open"),
    );
    let held = |n| {
        let held = wire::Held {
            key: key(),
            phase: wire::StayPhase::Decoding,
            blocks: 1,
            age_ms: 1,
            deadline_ms: 1,
        };
        ToGateway::HeartbeatAck {
            n: 1,
            held: vec![held; n],
            stats: stats(),
        }
    };
    check(&held(MAX_ROOMS), None);
    check(&held(MAX_ROOMS + 1), Some("heartbeat_ack.held"));
}

#[test]
fn tokens() {
    let tokens = |tokens: Vec<TokenOut>| ToGateway::Tokens {
        batch: vec![RoomTokens {
            key: key(),
            from: 1,
            tokens,
            finish: None,
        }],
    };
    let logprobs = |sampled, n| {
        let logprobs = Logprobs {
            sampled,
            top: vec![(1, sampled); n],
        };
        tokens(vec![TokenOut {
            token: 1,
            logprobs: Some(logprobs),
        }])
    };
    check(&logprobs(f32::NEG_INFINITY, MAX_TOP_LOGPROBS), None);
    check(&logprobs(-1.0, MAX_TOP_LOGPROBS + 1), Some("logprobs.top"));
    check(&logprobs(f32::NAN, 0), Some("logprobs"));
    check(&logprobs(f32::INFINITY, 1), Some("logprobs"));
    check(
        &tokens(vec![
            TokenOut {
                token: 1,
                logprobs: None
            };
            MAX_TOKENS
        ]),
        Some("room_tokens"),
    );
    let pull = |first| ToWorker::Pull {
        key: key(),
        ticket: ticket(),
        first,
    };
    check(&pull(Vec::new()), Some("pull.first"));
    check(&pull(vec![token()]), None);
}

#[test]
fn hellos() {
    check(
        &Hello {
            model: "m".repeat(MAX_NAME_BYTES),
            ..hello()
        },
        None,
    );
    for model in ["m".repeat(MAX_NAME_BYTES + 1), String::new(), "two\nlines".into()] {
        check(&Hello { model, ..hello() }, Some("hello.model"));
    }
    for (node, beyond) in [
        ("n".repeat(MAX_NODE_BYTES), None),
        ("Decode_0.rack-1".into(), None),
        ("n".repeat(MAX_NODE_BYTES + 1), Some("hello.node")),
        (String::new(), Some("hello.node")),
        ("two words".into(), Some("hello.node")),
        ("*".into(), Some("hello.node")),
    ] {
        check(&Hello { node, ..hello() }, beyond);
    }
    for (min_version, beyond) in [(1, None), (2, None), (3, Some("hello.min_version"))] {
        let max_version = 2;
        check(
            &Hello {
                min_version,
                max_version,
                ..hello()
            },
            beyond,
        );
    }
}

#[test]
fn shapes_of_pools() {
    for (block_tokens, beyond) in [(0, Some("hello.block_tokens")), (1, None)] {
        check(
            &Hello {
                block_tokens,
                ..hello()
            },
            beyond,
        );
    }
    for (blocks, beyond) in [(0, Some("hello.blocks")), (1, None)] {
        check(&Hello { blocks, ..hello() }, beyond);
    }
    for (context_tokens, beyond) in [
        (0, Some("hello.context_tokens")),
        (1, None),
        (262_144, None),
        (262_145, Some("hello.context_tokens")),
    ] {
        check(
            &Hello {
                context_tokens,
                ..hello()
            },
            beyond,
        );
    }
}

/// They are of the protocol: a node with others would not understand this one.
#[test]
fn limits_are_as_agreed() {
    assert_eq!(MAX_PAYLOAD_BYTES, 4_194_304);
    assert_eq!(MAX_HELLO_BYTES, 16_384);
    assert_eq!(MAX_DEADLINE_MS, 604_800_000, "a week");
    assert_eq!(MAX_LEASE_MS, 3_600_000, "an hour");
}

#[test]
fn addresses_and_reasons() {
    check(
        &Hello {
            kv_address: vec![0; 257],
            ..hello()
        },
        Some("hello.kv_address"),
    );
    let published = |source| ToGateway::Published {
        key: key(),
        ticket: Ticket { source, ..ticket() },
    };
    check(&published(vec![0; 256]), None);
    check(&published(vec![0; 257]), Some("ticket.source"));
    for (reason, fits) in [
        ("r".repeat(512), true),
        ("r".repeat(513), false),
        ("\x1b[2J".into(), false),
    ] {
        let beyond = |field| (!fits).then_some(field);
        let leaving = ToGateway::Leaving {
            reason: reason.clone(),
        };
        check(&leaving, beyond("leaving.reason"));
        let goodbye = ToWorker::Goodbye {
            reason: reason.clone(),
        };
        check(&goodbye, beyond("goodbye.reason"));
        let refused = HelloReply::Refused(HelloRefused { reason });
        check(&refused, beyond("hello_refused.reason"));
    }
    let kv_transport = "tcp\r".to_owned();
    let stats = WorkerStats {
        kv_transport,
        ..stats()
    };
    let ack = ToGateway::HeartbeatAck {
        n: 1,
        held: Vec::new(),
        stats,
    };
    check(&ack, Some("stats.kv_transport"));
}

#[test]
fn what_a_worker_says_in_words_is_short_and_on_one_line() {
    for (why, fits) in [
        ("w".repeat(200), true),
        ("w".repeat(201), false),
        (String::new(), false),
        ("two\nlines".into(), false),
    ] {
        let reason = ToGateway::Reason { key: key(), why };
        check(&reason, (!fits).then_some("reason.why"));
    }
}

#[test]
fn a_listener_is_an_address_and_a_port() {
    // The longest there is.
    let scoped = "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535";
    for (admin, fits) in [
        ("10.0.0.1:9090", true),
        ("[::1]:9090", true),
        (scoped, true),
        ("", false),
        ("10.0.0.1", false),
        ("localhost:9090", false),
        ("10.0.0.1:9090/stays", false),
    ] {
        let admin = admin.to_owned();
        check(&ToGateway::About { admin }, (!fits).then_some("about.admin"));
    }
    let padded = format!("{}:1", "1".repeat(63));
    let error = ToGateway::About { admin: padded }.encode(VERSION).unwrap_err();
    assert!(error.to_string().contains("the limit is 64"), "{error}");
}

#[test]
fn an_order_is_one_that_a_worker_can_follow() {
    for (role, within_ms, beyond) in [
        (Role::Decode, MAX_DEADLINE_MS, None),
        (Role::Gateway, 1, Some("order.role")),
        (Role::Mixed, MAX_DEADLINE_MS + 1, Some("order.within_ms")),
    ] {
        let order = Order::Role { role, within_ms };
        check(&ToWorker::Order { n: 1, order }, beyond);
    }
    for (len, beyond) in [
        (1, None),
        (MAX_REASON_BYTES, None),
        (0, Some("ordered.refused")),
        (MAX_REASON_BYTES + 1, Some("ordered.refused")),
    ] {
        let refused = Some("x".repeat(len));
        check(&ToGateway::Ordered { n: 1, refused }, beyond);
    }
}

#[test]
fn a_message_within_all_bounds_can_still_be_too_large() {
    let room = RoomTokens {
        key: key(),
        from: 0,
        tokens: vec![token(); 200_000],
        finish: None,
    };
    let error = ToGateway::Tokens { batch: vec![room] }
        .encode(VERSION)
        .unwrap_err();
    assert!(
        matches!(
            error,
            EncodeError::TooLarge {
                limit: MAX_PAYLOAD_BYTES,
                ..
            }
        ),
        "{error}"
    );
}
