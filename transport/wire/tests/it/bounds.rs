//! Every bound, on its legal side and beyond. Encoding and decoding hold to the same.

use wire::limits::{
    MAX_DEADLINE_MS, MAX_NAME_BYTES, MAX_PAYLOAD_BYTES, MAX_ROOMS, MAX_TOKENS, MAX_TOP_LOGPROBS,
};
use wire::{
    EncodeError, Hello, Logprobs, Message, RoomKey, RoomTokens, Sampling, Ticket, ToGateway, ToWorker,
    TokenOut, VERSION, Work,
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
    check(&reserve(|work| work.max_new = 0), Some("work.max_new"));
    let late = ToWorker::Prefill {
        key: key(),
        work: work(),
        deadline_ms: MAX_DEADLINE_MS + 1,
    };
    check(&late, Some("deadline_ms"));
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
    check(
        &sampling(|s| s.frequency_penalty = f32::NEG_INFINITY),
        Some("sampling.frequency_penalty"),
    );
    check(&sampling(|s| s.logprobs = Some(20)), None);
    check(&sampling(|s| s.logprobs = Some(21)), Some("sampling.logprobs"));
}

#[test]
fn lists_of_rooms() {
    let keys = |n: usize| {
        vec![
            RoomKey {
                seq: 1,
                generation: 1
            };
            n
        ]
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
fn texts_and_addresses() {
    check(
        &Hello {
            node: "n".repeat(MAX_NAME_BYTES),
            ..hello()
        },
        None,
    );
    check(
        &Hello {
            node: "n".repeat(MAX_NAME_BYTES + 1),
            ..hello()
        },
        Some("hello.node"),
    );
    check(
        &Hello {
            node: String::new(),
            ..hello()
        },
        Some("hello.node"),
    );
    check(
        &Hello {
            kv_address: vec![0; 257],
            ..hello()
        },
        Some("hello.kv_address"),
    );
    check(
        &Hello {
            min_version: 3,
            ..hello()
        },
        Some("hello.min_version"),
    );
    check(
        &Hello {
            context_tokens: 0,
            ..hello()
        },
        Some("hello.context_tokens"),
    );
    let published = |source| ToGateway::Published {
        key: key(),
        ticket: Ticket { source, ..ticket() },
    };
    check(&published(vec![0; 256]), None);
    check(&published(vec![0; 257]), Some("ticket.source"));
    check(
        &ToGateway::Leaving {
            reason: "r".repeat(513),
        },
        Some("leaving.reason"),
    );
    check(
        &ToWorker::Goodbye {
            reason: "r".repeat(513),
        },
        Some("goodbye.reason"),
    );
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
