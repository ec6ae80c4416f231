//! The whole table: every state of a stay × everything that can happen to it. The snapshot is the protocol; a change of
//! it is to be read line by line.

use std::fmt::Write as _;

use room::{EngineInput, Finish, FromOwner, HostInput, TransferInput};

use crate::host_kit::{FIRST_TOKEN, GATEWAY, Worker, attempt, job, kept};

/// Brings attempt 1#2 into a state.
type Build = fn(&mut Worker);

const STATES: &[(&str, Build)] = &[
    ("absent", |_| {}),
    ("reserved", reserve),
    ("prefilling", prefill),
    ("prefilling (mixed)", |w| {
        reserve(w);
        prefill(w);
    }),
    ("published", publish),
    ("pulling", pull),
    ("decoding", decode),
    ("decoding (paused)", |w| {
        let until = 1;
        w.owner(
            attempt(1, 2),
            FromOwner::Reserve(room::Job { until, ..job(7, 10) }),
        );
        w.owner(attempt(1, 2), FromOwner::Pull { sampled: 1 });
        w.transfer(attempt(1, 2), TransferInput::ReadEnded { ok: true });
    }),
    ("closing (engine)", |w| {
        prefill(w);
        close(w);
    }),
    ("closing (offer)", |w| {
        publish(w);
        close(w);
    }),
    ("closing (read)", |w| {
        pull(w);
        close(w);
    }),
    ("gone", |w| {
        reserve(w);
        close(w);
    }),
];

fn reserve(w: &mut Worker) {
    w.owner(attempt(1, 2), FromOwner::Reserve(job(7, 10)));
}

fn prefill(w: &mut Worker) {
    w.owner(attempt(1, 2), FromOwner::Prefill(job(7, 10)));
}

fn publish(w: &mut Worker) {
    prefill(w);
    w.engine(attempt(1, 2), FIRST_TOKEN);
}

fn pull(w: &mut Worker) {
    reserve(w);
    w.owner(attempt(1, 2), FromOwner::Pull { sampled: 1 });
}

fn decode(w: &mut Worker) {
    pull(w);
    w.transfer(attempt(1, 2), TransferInput::ReadEnded { ok: true });
}

fn close(w: &mut Worker) {
    w.owner(attempt(1, 2), FromOwner::Close);
}

fn owner_inputs() -> Vec<(String, HostInput)> {
    let messages = |generation: u32| {
        let about = attempt(1, generation);
        let named = [
            ("Reserve", FromOwner::Reserve(job(7, 10))),
            ("Prefill", FromOwner::Prefill(job(7, 10))),
            ("Pull", FromOwner::Pull { sampled: 1 }),
            ("Allow", FromOwner::Allow { until: 9 }),
            ("Release", FromOwner::Release),
            ("Close", FromOwner::Close),
        ];
        named.map(|(name, message)| {
            (
                format!("{name} #{generation}"),
                HostInput::Owner {
                    attempt: about,
                    message,
                },
            )
        })
    };
    [2, 1, 3].into_iter().flat_map(messages).collect()
}

fn other_inputs() -> Vec<(String, HostInput)> {
    let about = attempt(1, 2);
    let engine = |name: &str, event| {
        (
            name.to_owned(),
            HostInput::Engine {
                attempt: about,
                event,
            },
        )
    };
    let transfer = |name: &str, event| {
        (
            name.to_owned(),
            HostInput::Transfer {
                attempt: about,
                event,
            },
        )
    };
    let digest = |name: &str, open| {
        (
            name.to_owned(),
            HostInput::Digest {
                gateway: GATEWAY,
                n: 1,
                open,
            },
        )
    };
    vec![
        digest("digest with it", vec![kept(about, 0)]),
        digest("digest allowing", vec![kept(about, 9)]),
        digest("digest without it", Vec::new()),
        (
            "gateway lost".to_owned(),
            HostInput::GatewayLost { gateway: GATEWAY },
        ),
        engine("computed 8", EngineInput::Computed { positions: 8 }),
        engine("sampled", FIRST_TOKEN),
        engine(
            "sampled the last",
            EngineInput::Sampled {
                count: 1,
                finish: Some(Finish::Length),
            },
        ),
        engine("needs a block", EngineInput::NeedBlocks { n: 1 }),
        engine("has no token", EngineInput::NoToken),
        engine("stopped", EngineInput::Stopped),
        ("engine down".to_owned(), HostInput::EngineDown),
        transfer("offered", TransferInput::Offered),
        transfer("withdrawn", TransferInput::Withdrawn),
        transfer("read ended", TransferInput::ReadEnded { ok: true }),
        transfer("read failed", TransferInput::ReadEnded { ok: false }),
        ("drain".to_owned(), HostInput::Drain),
        ("undrain".to_owned(), HostInput::Undrain),
    ]
}

fn row(worker: &mut Worker, name: &str, act: impl FnOnce(&mut Worker) -> Vec<String>) -> String {
    let before = worker.phase(attempt(1, 2));
    let commands = act(worker);
    let after = worker.phase(attempt(1, 2));
    let step = if before == after { "=".to_owned() } else { after };
    format!(
        "  {name:<18} -> {step:<10} {:>9}  {}",
        worker.blocks(),
        commands.join("; ")
    )
    .trim_end()
    .to_owned()
}

#[test]
fn every_state_and_every_input() {
    let mut table = String::from(
        "  input -> phase after ('=': as before), blocks free/leased/cached/quarantined, commands\n",
    );
    for (state, build) in STATES {
        let _ = writeln!(table, "\n{state}");
        let fresh = || {
            let mut worker = Worker::new(true);
            build(&mut worker);
            worker
        };
        for (name, input) in owner_inputs().into_iter().chain(other_inputs()) {
            let _ = writeln!(table, "{}", row(&mut fresh(), &name, |worker| worker.feed(input)));
        }
        let _ = writeln!(table, "{}", row(&mut fresh(), "deadline", Worker::timeout));
    }
    insta::assert_snapshot!(table);
}
