//! The whole transition table, as a snapshot for the reader: every state of a room × every input.
//!
//! A change of the protocol is a change of `snapshots/`. Inputs with the same effect share a line.

use std::fmt::Write as _;

use room::{
    AbortBy, AttemptError, Command, Credit, Failure, Finish, Generation, Input, NodeId, Order, PhaseKind,
    Refusal, Report, Room,
};

use crate::room_kit::{
    DECODE, MIXED, PAIR, PREFILL, SPEC, STRANGER, advance, commands, from, ms, new_room, room_in, room_of,
    second_attempt, tell, token,
};

/// A way to a state, with its name. Rooms cannot be cloned, so each is made anew for each input.
type Make = fn() -> Room;

const STATES: &[(&str, Make)] = &[
    ("queued", || room_in(PhaseKind::Queued, PAIR)),
    ("queued, pausing after a refusal", || {
        let mut room = room_in(PhaseKind::Reserving, PAIR);
        tell(&mut room, ms(0), DECODE, Report::Refused(Refusal::NoBlocks));
        drained_of(room)
    }),
    ("reserving", || room_in(PhaseKind::Reserving, PAIR)),
    ("prefilling", || room_in(PhaseKind::Prefilling, PAIR)),
    ("prefilling, first token here", || {
        let mut room = room_in(PhaseKind::Prefilling, PAIR);
        tell(&mut room, ms(0), PREFILL, token(0));
        drained_of(room)
    }),
    ("prefilling, published before the first token", || {
        let mut room = room_in(PhaseKind::Prefilling, PAIR);
        tell(&mut room, ms(0), PREFILL, Report::Published);
        drained_of(room)
    }),
    ("pulling", || room_in(PhaseKind::Pulling, PAIR)),
    ("decoding, prefill not yet closed", || {
        room_in(PhaseKind::Decoding, PAIR)
    }),
    ("decoding, all tokens delivered", || {
        let mut room = room_in(PhaseKind::Decoding, PAIR);
        tell(
            &mut room,
            ms(0),
            DECODE,
            Report::Tokens {
                from: 1,
                count: SPEC.max_new - 1,
            },
        );
        drained_of(room)
    }),
    ("decoding, paused for its reader", || {
        let mut room = room_of(2);
        advance(&mut room, PhaseKind::Decoding, PAIR, ms(0));
        tell(&mut room, ms(0), DECODE, token(1));
        drained_of(room)
    }),
    ("draining, both legs out", || {
        let mut room = room_in(PhaseKind::Pulling, PAIR);
        room.handle_input(ms(0), Input::Abort(AbortBy::ClientGone));
        drained_of(room)
    }),
    ("draining, decode's leg out", || {
        let mut room = room_in(PhaseKind::Reserving, PAIR);
        room.handle_input(ms(0), Input::Abort(AbortBy::ClientGone));
        drained_of(room)
    }),
    ("ended", || room_in(PhaseKind::Ended, PAIR)),
    ("mixed worker: reserving", || room_in(PhaseKind::Reserving, MIXED)),
    ("mixed worker: prefilling", || {
        room_in(PhaseKind::Prefilling, MIXED)
    }),
    ("mixed worker: decoding", || room_in(PhaseKind::Decoding, MIXED)),
    ("second attempt: queued", second_attempt),
    ("second attempt: decoding, one token before it", || {
        let mut room = second_attempt();
        advance(&mut room, PhaseKind::Decoding, PAIR, ms(1));
        drained_of(room)
    }),
];

fn drained_of(mut room: Room) -> Room {
    commands(&mut room);
    room
}

#[test]
fn every_phase_by_every_input() {
    let mut table = String::from(
        "P: prefill, D: decode, X: another worker. A report from X, or about another generation than the current\n\
         one, changes nothing in any state, and is counted; its lines are left out.\n\n",
    );
    for (name, make) in STATES {
        writeln!(table, "{name}").unwrap();
        for (effect, inputs) in effects(*make) {
            writeln!(table, "    {}\n        {effect}", inputs.join("  ")).unwrap();
        }
        writeln!(table).unwrap();
    }
    insta::assert_snapshot!("room_table", table);
}

/// The effects in order of first appearance, those that are none at the end; each with the inputs that have it.
fn effects(make: Make) -> Vec<(String, Vec<String>)> {
    let mut effects: Vec<(String, Vec<Label>)> = Vec::new();
    for (label, act) in all_acts(&make()) {
        let effect = effect_of(&mut make(), &act);
        match effects.iter_mut().find(|(known, _)| *known == effect) {
            Some((_, labels)) => labels.push(label),
            None => effects.push((effect, vec![label])),
        }
    }
    effects.sort_by_key(|(effect, _)| effect.starts_with("nothing"));
    effects
        .into_iter()
        .map(|(effect, labels)| (effect, by_source(&labels)))
        .collect()
}

/// Where an input comes from (empty for the room's own surroundings), and what it is.
type Label = (&'static str, &'static str);

/// `P[this that]` for what a worker says, `P[any]` for whatever it says.
fn by_source(labels: &[Label]) -> Vec<String> {
    let of = |source| {
        labels
            .iter()
            .filter(move |(s, _)| *s == source)
            .map(|(_, what)| *what)
    };
    let mut groups: Vec<String> = of("").map(str::to_owned).collect();
    for source in ["P", "D"] {
        let said: Vec<_> = of(source).collect();
        match said.len() {
            0 => {}
            all if all == reports(0).len() => groups.push(format!("{source}[any]")),
            _ => groups.push(format!("{source}[{}]", said.join(" "))),
        }
    }
    groups
}

enum Act {
    Input(Input),
    PhaseDeadline,
    RequestDeadline,
}

fn effect_of(room: &mut Room, act: &Act) -> String {
    let (phase, generation, stale) = (room.phase(), room.generation(), room.stale_inputs());
    match act {
        Act::Input(input) => room.handle_input(ms(2), *input),
        Act::RequestDeadline => room.handle_timeout(SPEC.deadline),
        Act::PhaseDeadline => {
            let at = room.deadline();
            if let Some(at) = at {
                room.handle_timeout(at);
            }
        }
    }
    let mut effect = String::new();
    if room.phase() != phase || room.generation() != generation {
        write!(effect, "→ {}", room.phase()).unwrap();
        if room.generation() != generation {
            write!(effect, " #{}", room.generation().0).unwrap();
        }
        effect.push_str("; ");
    }
    let done: Vec<_> = commands(room).iter().map(show).collect();
    effect.push_str(&done.join("; "));
    match (effect.is_empty(), room.stale_inputs() > stale) {
        (true, true) => "nothing; counted".to_owned(),
        (true, false) => "nothing".to_owned(),
        (false, true) => format!("{effect}; counted"),
        (false, false) => effect,
    }
}

fn all_acts(room: &Room) -> Vec<(Label, Act)> {
    let generation = room.generation();
    let mut acts = Vec::new();
    let mut add = |label, input| acts.push((label, Act::Input(input)));
    add(
        ("", "Admitted"),
        Input::Admitted {
            generation,
            route: PAIR,
        },
    );
    add(
        ("", "Admitted(old)"),
        Input::Admitted {
            generation: Generation(generation.0 - 1),
            route: PAIR,
        },
    );
    add(
        ("", "NotAdmitted"),
        Input::NotAdmitted {
            generation,
            failure: Failure::NoWorker,
        },
    );
    for worker in [PREFILL, DECODE] {
        for (what, report) in reports(room.delivered()) {
            add((name(worker), what), from(room, worker, report));
        }
    }
    for (what, worker) in [("P lost", PREFILL), ("D lost", DECODE), ("X lost", STRANGER)] {
        add(("", what), Input::WorkerLost { worker });
    }
    let tokens = room.delivered();
    add(("", "Read(all)"), Input::Read { tokens });
    add(("", "StopString"), Input::StopStringFound);
    add(("", "Abort"), Input::Abort(AbortBy::ClientGone));
    acts.push((("", "phase deadline"), Act::PhaseDeadline));
    acts.push((("", "request deadline"), Act::RequestDeadline));
    acts
}

/// Every report, and the kinds of content that differ in effect. `next` is the place of the next token.
fn reports(next: u32) -> Vec<(&'static str, Report)> {
    let last = next.saturating_sub(1);
    vec![
        ("Reserved", Report::Reserved { cached_blocks: 3 }),
        ("Refused(NoBlocks)", Report::Refused(Refusal::NoBlocks)),
        ("Refused(TooLarge)", Report::Refused(Refusal::TooLarge)),
        ("Refused(OutOfOrder)", Report::Refused(Refusal::OutOfOrder)),
        ("Progress", Report::Progress { positions: 64 }),
        ("Tokens(next)", Report::Tokens { from: next, count: 2 }),
        ("Tokens(overlap)", Report::Tokens { from: last, count: 3 }),
        (
            "Tokens(known)",
            Report::Tokens {
                from: last,
                count: next - last,
            },
        ),
        (
            "Tokens(gap)",
            Report::Tokens {
                from: next + 1,
                count: 1,
            },
        ),
        ("Published", Report::Published),
        ("Pulled", Report::Pulled),
        (
            "Finished",
            Report::Finished {
                finish: Finish::Stop,
                total: next,
            },
        ),
        (
            "Finished(gap)",
            Report::Finished {
                finish: Finish::Stop,
                total: next + 1,
            },
        ),
        ("Failed(EngineFailed)", Report::Failed(AttemptError::EngineFailed)),
        ("Failed(NoToken)", Report::Failed(AttemptError::NoToken)),
        ("Failed(Evicted)", Report::Failed(AttemptError::Evicted)),
        ("Closed", Report::Closed),
        ("NotHeld", Report::NotHeld),
        ("Held", Report::Held),
    ]
}

fn name(node: NodeId) -> &'static str {
    match node {
        PREFILL => "P",
        DECODE => "D",
        _ => "X",
    }
}

fn show(command: &Command) -> String {
    let tag = |of: Generation| {
        if of == Generation::FIRST {
            String::new()
        } else {
            format!("#{}", of.0)
        }
    };
    match command {
        Command::Enqueue(bid) => {
            let avoid: Vec<_> = bid.avoid.iter().map(|node| name(*node)).collect();
            format!(
                "Enqueue{}({} positions, avoid {avoid:?})",
                tag(bid.attempt.generation),
                bid.positions
            )
            .replace('"', "")
        }
        Command::LeaveQueue { attempt } => format!("LeaveQueue{}", tag(attempt.generation)),
        Command::GiveBack {
            attempt,
            worker,
            credit,
        } => {
            let part = if *credit == Credit::All { "" } else { "compute " };
            format!("GiveBack{}({part}{})", tag(attempt.generation), name(*worker))
        }
        Command::Send { to, attempt, order } => {
            format!(
                "{}{} to {}",
                show_order(*order),
                tag(attempt.generation),
                name(*to)
            )
        }
        Command::Deliver { skip, take } => format!("Deliver({take} after {skip})"),
        Command::Fence { worker } => format!("Fence({})", name(*worker)),
        Command::Answer(outcome) => format!("Answer({outcome:?})"),
        Command::End => "End".to_owned(),
    }
}

fn show_order(order: Order) -> String {
    match order {
        Order::Reserve(work) => format!("Reserve({} of {})", work.positions, work.max_positions),
        Order::Prefill {
            work,
            decode_has_blocks,
            then_decode,
        } => {
            let then = if then_decode { ", then decode" } else { "" };
            format!(
                "Prefill({}, decode has {decode_has_blocks} blocks{then})",
                work.positions
            )
        }
        Order::Pull { from } => format!("Pull(from {})", name(from)),
        Order::Allow { until } => format!("Allow(until {until})"),
        Order::Release => "Release".to_owned(),
        Order::Close => "Close".to_owned(),
    }
}

/// What the table shows of strangers and of other generations, demanded: it changes nothing (INV-07).
#[test]
fn a_report_that_matches_no_leg_changes_nothing() {
    for (state, make) in STATES {
        for (label, report) in reports(make().delivered()) {
            check_ignored(*make, state, label, STRANGER, 0, report);
            check_ignored(*make, state, label, DECODE, 1, report);
            check_ignored(*make, state, label, PREFILL, 40, report);
        }
    }
}

fn check_ignored(make: Make, state: &str, label: &str, worker: NodeId, ahead: u32, report: Report) {
    let mut room = make();
    let generation = Generation(room.generation().0 + ahead);
    let before = (
        room.phase(),
        room.generation(),
        room.legs(),
        room.delivered(),
        room.poll_timeout(),
    );
    let counted = room.stale_inputs();
    room.handle_input(
        ms(2),
        Input::FromWorker {
            worker,
            generation,
            report,
        },
    );
    let after = (
        room.phase(),
        room.generation(),
        room.legs(),
        room.delivered(),
        room.poll_timeout(),
    );
    assert_eq!(before, after, "{state}: {label}");
    assert_eq!(commands(&mut room), [], "{state}: {label}");
    assert_eq!(room.stale_inputs(), counted + 1, "{state}: {label}");
}

/// Every step that a room takes is in the list of legal ones, and every legal one is taken by some input.
#[test]
fn legal_steps_are_the_steps_taken() {
    let mut taken = std::collections::BTreeSet::new();
    for (_, make) in STATES {
        for (_, act) in all_acts(&make()) {
            let mut room = make();
            effect_of(&mut room, &act);
            while let Some(event) = room.poll_event() {
                if let room::Happening::Transition(step) = event.what {
                    taken.insert((step.from, step.to));
                }
            }
        }
    }
    let mut legal = std::collections::BTreeSet::new();
    for from in PhaseKind::ALL {
        legal.extend(
            PhaseKind::ALL
                .into_iter()
                .filter(|to| from.may_become(*to))
                .map(|to| (from, to)),
        );
    }
    assert_eq!(taken, legal);
}

/// What an undisturbed room wants done, from the first command to the last.
#[test]
fn the_way_to_a_phase_is_undisturbed() {
    let mut room = new_room();
    advance(&mut room, PhaseKind::Ended, PAIR, ms(0));
    let said: Vec<_> = commands(&mut room).iter().map(show).collect();
    insta::assert_snapshot!("room_undisturbed", said.join("\n"));
}
