//! Model checking: rooms, hosts and ledgers as they are, under every order of events that the bounds allow.
//!
//! # What is modelled
//!
//! One gateway with [`room::Room`]s, workers with [`room::Host`]s (and the [`room::Ledger`]s in them), and what lies between
//! them. Those three are the code itself; everything around them is small and adversarial, and whatever may happen next
//! is tried:
//!
//! * **Links** (`links`): a queue each way. A message can be lost, repeated (the copy comes behind all others) or overtaken
//!   by the next, each at a cost; a link can end, and each end finds out in its own time. Digests and their answers keep
//!   their place, as on the real links, for that is what makes an answer a proof; they can be lost.
//! * **Processes**: a worker crashes with all it was doing, and comes back as another incarnation.
//! * **Clients** leave at any moment.
//! * **Time** moves a whole unit at a time, and everything else takes none. What is due is done before the clock moves on, but
//!   in any order with all else. Time passes freely while all wait for it; while anything else waits to be done, a
//!   unit costs: fairness is that budget.
//! * **Engine and transfer** (`worker`) keep their own record of what they touch, go on until they have proven that they
//!   stopped, and put into each block the name of what they write. Bytes leave a source, are under way, and land.
//! * **The desk** is a desk without memory: credit comes at any moment, at any linked worker, whether or not it has room.
//!
//! A state is all of that; its identity leaves out what decides nothing (`part`).
//!
//! # What is asked
//!
//! The laws are in `laws`: INV-01 to 05, 07 and 08, in every state. *Everything ends* is such a law too, and not a property of
//! stateright's kind `eventually`: that forgets which way led to a state that two ways lead to, and takes a circle for no end.
//! Here each step uses something up (a message, a step of work, a unit of a budget) or moves the clock, and the clock is part
//! of the state; so there are no circles (`circles` looks for one), and it is enough that (1) where nothing can happen any more, all has ended and
//! every block is back, and (2) the clock never gets far. Both are asked of every state, under every schedule.
//!
//! # What is not
//!
//! Progress reports, stop strings, draining workers, a dead engine, gateways that die (all in `room_table`, `host_prop`),
//! the real desk (`desk`), pools of more than a few blocks, and more faults at once than a budget has.
//!
//! # How much
//!
//! The tests explore every state of small budgets. `MODEL_STATES=n` (`just model`) takes larger ones, and gives up on a model
//! after about `n` states; it says so. `MODEL_JSON=FILE` adds what came of each model to that file.

mod circles;
mod laws;
mod ledger;
mod links;
mod owner;
mod part;
mod record;
mod setup;
mod state;
mod steps;
mod worker;

use std::fmt::Debug;
use std::hash::Hash;
use std::time::Instant;

use stateright::{Checker, Expectation, HasDiscoveries, Model};

use setup::{Kind, Setup};
use state::Budget;

const PAIR: &[Kind] = &[Kind::Prefill, Kind::Decode];
const MIXED: &[Kind] = &[Kind::Mixed];
const NOTHING: Budget = Budget {
    network: 0,
    crashes: 0,
    cuts: 0,
    aborts: 0,
    slow: 0,
};

/// One room on a pair of workers that have just enough blocks for it.
const ONE: Setup = Setup {
    workers: PAIR,
    rooms: 1,
    answer: 2,
    blocks: 2,
    shares: false,
    budget: NOTHING,
    loses_closes: false,
    loses_digests: false,
    loses_allows: false,
    unread: None,
};

/// More states than any model of the test command has; a model that outgrows it fails.
const FEW: usize = 100_000;

/// How many states to explore of the larger models, if those are wanted.
fn wanted() -> Option<usize> {
    let given = std::env::var_os("MODEL_STATES")?;
    given.to_str()?.parse().ok()
}

/// Explores `setup`, or the same with the larger budget.
fn check(name: &str, setup: Setup, larger: Budget) {
    let budget = if wanted().is_some() { larger } else { setup.budget };
    explore(name, &budget.to_string(), Setup { budget, ..setup });
}

/// Explores `model`: breadth first, so that what breaks a law is the shortest way to it; the larger ones depth first, which
/// takes far less memory.
fn explore<M>(name: &str, budget: &str, model: M)
where
    M: Model<State: Clone + Debug + Hash + PartialEq + Send + Sync, Action: Clone + Debug + PartialEq>
        + Send
        + Sync
        + 'static,
{
    // Some four steps lead to each state, and their number is what can be bounded.
    let most = wanted().map_or(5 * FEW, |states| states.saturating_mul(4));
    let checker = model
        .checker()
        .threads(2)
        .target_state_count(most)
        .finish_when(HasDiscoveries::AnyFailures);
    match wanted() {
        None => judge(name, budget, most, || checker.spawn_bfs().join()),
        Some(_) => judge(name, budget, most, || checker.spawn_dfs().join()),
    }
}

/// Prints how much there was, and fails with the steps that lead to a broken law.
fn judge<M, C>(name: &str, budget: &str, most: usize, run: impl FnOnce() -> C)
where
    M: Model<State: Clone + Debug + PartialEq, Action: Clone + Debug + PartialEq>,
    C: Checker<M>,
{
    #[expect(
        clippy::disallowed_methods,
        reason = "how long it takes is printed, and decides nothing"
    )]
    let begun = Instant::now();
    let checker = run();
    let states = checker.unique_state_count();
    let is_all = checker.state_count() < most;
    println!(
        "model: {name}: {states} states{}, {} steps, depth {}, {:.1} s",
        if is_all { "" } else { " (not all)" },
        checker.state_count(),
        checker.max_depth(),
        begun.elapsed().as_secs_f64()
    );
    record::record(name, budget, is_all, begun.elapsed(), &checker);
    for property in checker.model().properties() {
        let found = checker.discovery(property.name);
        if let (Expectation::Always, Some(path)) = (property.expectation, found) {
            let steps: Vec<_> = path
                .into_actions()
                .iter()
                .map(|step| format!("{step:?}"))
                .collect();
            panic!(
                "{name}: {states} states, {} steps: broken: {}\n{}",
                steps.len(),
                property.name,
                steps.join("\n")
            );
        }
    }
    assert!(
        wanted().is_some() || (is_all && states <= FEW),
        "{name}: too large for a test"
    );
    for property in checker.model().properties() {
        let never =
            property.expectation == Expectation::Sometimes && checker.discovery(property.name).is_none();
        assert!(!(is_all && never), "{name}: never: {}", property.name);
    }
}

#[test]
fn a_network_that_loses_repeats_and_reorders() {
    let budget = Budget {
        network: 2,
        ..NOTHING
    };
    let larger = Budget {
        network: 2,
        aborts: 1,
        slow: 1,
        ..NOTHING
    };
    check("network, one room", Setup { budget, ..ONE }, larger);
    let mixed = Setup {
        workers: MIXED,
        ..ONE
    };
    let budget = Budget {
        network: 2,
        aborts: 1,
        ..NOTHING
    };
    check("network, one mixed worker", Setup { budget, ..mixed }, larger);
}

#[test]
fn workers_that_crash_and_come_back() {
    let budget = Budget {
        crashes: 1,
        aborts: 1,
        ..NOTHING
    };
    let larger = Budget {
        crashes: 1,
        cuts: 1,
        aborts: 1,
        slow: 1,
        ..NOTHING
    };
    check("crashes, one room", Setup { budget, ..ONE }, larger);
}

#[test]
fn rooms_that_use_the_same_blocks_in_turn() {
    let two = Setup { rooms: 2, ..ONE };
    let budget = Budget { aborts: 1, ..NOTHING };
    let larger = Budget {
        aborts: 1,
        network: 1,
        slow: 1,
        ..NOTHING
    };
    check("reuse, two rooms", Setup { budget, ..two }, larger);
    let shared = Setup {
        shares: true,
        blocks: 3,
        ..two
    };
    check(
        "reuse, two rooms of one prompt",
        Setup { budget, ..shared },
        larger,
    );
}

#[test]
fn sequences_that_grow_until_one_gives_way() {
    let grow = Setup {
        workers: MIXED,
        rooms: 2,
        answer: 4,
        blocks: 3,
        ..ONE
    };
    let budget = Budget { aborts: 1, ..NOTHING };
    let larger = Budget {
        aborts: 1,
        network: 2,
        slow: 1,
        ..NOTHING
    };
    check(
        "growth, two rooms on a mixed worker",
        Setup { budget, ..grow },
        larger,
    );
}

#[test]
fn every_room_ends_though_every_close_is_lost() {
    let lost = Setup {
        loses_closes: true,
        ..ONE
    };
    let budget = Budget {
        aborts: 1,
        slow: 1,
        ..NOTHING
    };
    let larger = Budget {
        aborts: 1,
        slow: 1,
        network: 1,
        crashes: 1,
        ..NOTHING
    };
    check("no Close arrives", Setup { budget, ..lost }, larger);
    let mute = Setup {
        loses_digests: true,
        ..lost
    };
    check(
        "neither Close nor digest arrives",
        Setup { budget, ..mute },
        larger,
    );
}

#[test]
fn readers_that_are_slow_or_never_read() {
    let slow = Setup {
        answer: 3,
        blocks: 3,
        unread: Some(1),
        ..ONE
    };
    let budget = Budget {
        network: 1,
        ..NOTHING
    };
    let larger = Budget {
        network: 2,
        aborts: 1,
        slow: 1,
        ..NOTHING
    };
    check("slow reader, one room", Setup { budget, ..slow }, larger);
    let mixed = Setup {
        workers: MIXED,
        ..slow
    };
    check("slow reader, one mixed worker", Setup { budget, ..mixed }, larger);
    // The digest alone brings what is allowed.
    let mute = Setup {
        loses_allows: true,
        ..slow
    };
    check("no Allow arrives", mute, larger);
}

#[test]
fn no_schedule_goes_round_in_a_circle() {
    let budget = Budget {
        network: 1,
        aborts: 1,
        ..NOTHING
    };
    let one = Setup { budget, ..ONE };
    let mute = Setup {
        loses_closes: true,
        loses_digests: true,
        ..one
    };
    for setup in [one, mute] {
        assert_eq!(circles::circle(&setup, FEW), None);
    }
}

#[test]
fn a_ledger_under_every_order_of_operations() {
    let rooms = if wanted().is_some() { 3 } else { 2 };
    explore("ledger", &format!("{rooms} rooms"), ledger::Leases { rooms });
}
