//! One message of every kind, with every field set to something that tells it apart.

use wire::{
    AttemptError, Finish, Held, Hello, HelloAck, HelloRefused, HelloReply, Kept, Logprobs, Order, Refusal,
    Role, RoomKey, RoomTokens, Sampling, StayPhase, Ticket, ToGateway, ToWorker, TokenOut, TraceContext,
    WaitedIn, Work, WorkerStats,
};

pub(crate) fn key() -> RoomKey {
    RoomKey {
        seq: 0x0102_0304_0506_0708,
        generation: 3,
    }
}

pub(crate) fn work() -> Work {
    let sampling = Sampling {
        temperature: 0.5,
        top_p: 0.25,
        top_k: 40,
        min_p: 0.125,
        seed: 42,
        presence_penalty: -0.5,
        frequency_penalty: 1.5,
        logprobs: Some(2),
    };
    let trace = TraceContext {
        trace_id: 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c,
        span_id: 0xb7ad_6b71,
        flags: 1,
    };
    Work {
        tokens: vec![1, 2, 3, 49_151],
        prompt_tokens: 3,
        max_new: 64,
        ignore_eos: true,
        priority: 7,
        sampling,
        salt: 99,
        trace: Some(trace),
    }
}

pub(crate) fn ticket() -> Ticket {
    Ticket {
        capability: *b"0123456789abcdef",
        source: b"tcp://10.0.0.1:7001".to_vec(),
        blocks: 2,
        positions: 20,
    }
}

pub(crate) fn token() -> TokenOut {
    let top = vec![(5, -0.25), (6, f32::NEG_INFINITY)];
    TokenOut {
        token: 5,
        logprobs: Some(Logprobs { sampled: -0.25, top }),
    }
}

pub(crate) fn hello() -> Hello {
    Hello {
        min_version: 1,
        max_version: 2,
        node: "decode-1".into(),
        epoch: 0x1122_3344_5566_7788,
        role: Role::Decode,
        model: "SmolLM2-135M-Instruct".into(),
        layout_hash: 0xfeed_beef,
        block_tokens: 16,
        blocks: 512,
        slots: 32,
        context_tokens: 8192,
        kv_address: vec![1, 2, 3, 4],
        numerics: "cpu-q4-vnni".into(),
        faults: true,
    }
}

pub(crate) fn replies() -> Vec<HelloReply> {
    let ack = HelloAck {
        version: 1,
        node: "gateway-1".into(),
        epoch: 77,
        heartbeat_ms: 250,
        lease_ms: 2000,
    };
    vec![
        HelloReply::Accepted(ack),
        HelloReply::Refused(HelloRefused {
            reason: "another model".into(),
        }),
    ]
}

pub(crate) fn orders() -> Vec<ToWorker> {
    vec![
        ToWorker::Heartbeat {
            n: 9,
            open: vec![
                Kept {
                    key: key(),
                    until: 256,
                },
                Kept {
                    key: RoomKey {
                        seq: 2,
                        generation: 1,
                    },
                    until: 513,
                },
            ],
        },
        ToWorker::Reserve {
            key: key(),
            work: work(),
            until: 257,
            deadline_ms: 30_000,
        },
        ToWorker::Prefill {
            key: key(),
            work: Work {
                trace: None,
                ..work()
            },
            until: 258,
            deadline_ms: 29_000,
        },
        ToWorker::Pull {
            key: key(),
            ticket: ticket(),
            first: vec![token()],
        },
        ToWorker::Release { key: key() },
        ToWorker::Close { key: key() },
        ToWorker::Goodbye {
            reason: "drained".into(),
        },
        ToWorker::Allow {
            key: key(),
            until: 384,
        },
        ToWorker::KeepTrace { seq: 7 },
        ToWorker::Order {
            n: 3,
            order: Order::Role {
                role: Role::Decode,
                within_ms: 30_000,
            },
        },
    ]
}

/// Every order there is.
pub(crate) fn order_variants() -> impl Iterator<Item = ToWorker> {
    let roles = [Role::Prefill, Role::Decode, Role::Mixed];
    let role = |role| Order::Role { role, within_ms: 7 };
    let all = [Order::Drain, Order::Undrain].into_iter().chain(roles.map(role));
    all.map(|order| ToWorker::Order { n: 1, order })
}

pub(crate) fn stats() -> WorkerStats {
    WorkerStats {
        blocks_total: 100,
        blocks_free: 40,
        blocks_cached: 30,
        blocks_leased: 20,
        blocks_quarantined: 10,
        slots_total: 32,
        slots_used: 5,
        prefill_backlog_tokens: 4096,
        draining: true,
        kv_bytes_in: 1 << 40,
        kv_bytes_out: 1 << 41,
        kv_transport: "ucx:tcp".into(),
    }
}

fn reason() -> ToGateway {
    ToGateway::Reason {
        key: key(),
        why: "no progress for 2000 ms".into(),
    }
}

fn about() -> ToGateway {
    ToGateway::About {
        admin: "10.0.0.1:9090".into(),
    }
}

fn ordered() -> ToGateway {
    ToGateway::Ordered {
        n: 3,
        refused: Some("its process stops".into()),
    }
}

pub(crate) fn news() -> Vec<ToGateway> {
    let held = Held {
        key: key(),
        phase: StayPhase::Pulling,
        blocks: 12,
        age_ms: 1500,
        deadline_ms: 28_500,
    };
    let plain = TokenOut {
        token: 8,
        logprobs: None,
    };
    let batch = vec![
        RoomTokens {
            key: key(),
            from: 4,
            tokens: vec![token(), plain],
            finish: None,
        },
        RoomTokens {
            key: RoomKey {
                seq: 2,
                generation: 1,
            },
            from: 64,
            tokens: Vec::new(),
            finish: Some(Finish::Length),
        },
    ];
    vec![
        ToGateway::HeartbeatAck {
            n: 9,
            held: vec![held],
            stats: stats(),
        },
        ToGateway::Reserved {
            key: key(),
            cached_blocks: 3,
        },
        ToGateway::Refused {
            key: key(),
            why: Refusal::NoSlot,
        },
        ToGateway::Progress {
            key: key(),
            positions: 256,
        },
        ToGateway::Tokens { batch },
        ToGateway::Published {
            key: key(),
            ticket: ticket(),
        },
        ToGateway::Pulled {
            key: key(),
            bytes: 1 << 33,
            descriptors: 60,
            micros: 1234,
            transport: "posix".into(),
        },
        ToGateway::Failed {
            key: key(),
            why: AttemptError::NoProgress(WaitedIn::Pulling),
        },
        ToGateway::Closed { key: key() },
        ToGateway::Leaving {
            reason: "SIGTERM".into(),
        },
        reason(),
        about(),
        ordered(),
    ]
}

/// A message with each variant of each enumeration that messages contain, and what it is called. The matches make sure of "each".
pub(crate) fn variants() -> Vec<(String, ToGateway)> {
    let mut all: Vec<(String, ToGateway)> = Vec::new();
    all.extend(refusals().map(|why| (format!("{why:?}"), ToGateway::Refused { key: key(), why })));
    all.extend(errors().map(|why| (format!("{why:?}"), ToGateway::Failed { key: key(), why })));
    all.extend(phases().map(|phase| {
        let held = Held {
            key: key(),
            phase,
            blocks: 1,
            age_ms: 2,
            deadline_ms: 3,
        };
        let ack = ToGateway::HeartbeatAck {
            n: 1,
            held: vec![held],
            stats: stats(),
        };
        (format!("{phase:?}"), ack)
    }));
    all.extend([Finish::Stop, Finish::Length].map(|finish| {
        let room = RoomTokens {
            key: key(),
            from: 1,
            tokens: Vec::new(),
            finish: Some(finish),
        };
        (format!("{finish:?}"), ToGateway::Tokens { batch: vec![room] })
    }));
    all
}

/// Every value from the first on, each followed by what `next` says.
fn chain<T: Copy>(first: T, next: impl Fn(T) -> Option<T>) -> impl Iterator<Item = T> {
    std::iter::successors(Some(first), move |one| next(*one))
}

fn refusals() -> impl Iterator<Item = Refusal> {
    chain(Refusal::NoBlocks, |one| match one {
        Refusal::NoBlocks => Some(Refusal::NoSlot),
        Refusal::NoSlot => Some(Refusal::Draining),
        Refusal::Draining => Some(Refusal::TooLarge),
        Refusal::TooLarge => Some(Refusal::Stale),
        Refusal::Stale => Some(Refusal::OutOfOrder),
        Refusal::OutOfOrder => None,
    })
}

fn waits() -> impl Iterator<Item = WaitedIn> {
    chain(WaitedIn::Queued, |one| match one {
        WaitedIn::Queued => Some(WaitedIn::Reserving),
        WaitedIn::Reserving => Some(WaitedIn::Prefilling),
        WaitedIn::Prefilling => Some(WaitedIn::Pulling),
        WaitedIn::Pulling => Some(WaitedIn::Decoding),
        WaitedIn::Decoding => Some(WaitedIn::Draining),
        WaitedIn::Draining => Some(WaitedIn::Ended),
        WaitedIn::Ended => None,
    })
}

fn phases() -> impl Iterator<Item = StayPhase> {
    chain(StayPhase::Reserved, |one| match one {
        StayPhase::Reserved => Some(StayPhase::Prefilling),
        StayPhase::Prefilling => Some(StayPhase::Published),
        StayPhase::Published => Some(StayPhase::Pulling),
        StayPhase::Pulling => Some(StayPhase::Decoding),
        StayPhase::Decoding => Some(StayPhase::Closing),
        StayPhase::Closing => None,
    })
}

fn errors() -> impl Iterator<Item = AttemptError> {
    let plain = chain(AttemptError::WorkerLost, |one| match one {
        AttemptError::WorkerLost => Some(AttemptError::PullFailed),
        AttemptError::PullFailed => Some(AttemptError::EngineFailed),
        AttemptError::EngineFailed => Some(AttemptError::Gap),
        AttemptError::Gap => Some(AttemptError::UnknownAttempt),
        AttemptError::UnknownAttempt => Some(AttemptError::Evicted),
        AttemptError::Evicted => Some(AttemptError::NoToken),
        AttemptError::NoToken | AttemptError::NoProgress(_) | AttemptError::Refused(_) => None,
    });
    plain
        .chain(waits().map(AttemptError::NoProgress))
        .chain(refusals().map(AttemptError::Refused))
}
