//! Owners and hosts together, under loss, repetition and death: every request that checks in checks out, and every block comes back.

use proptest::prelude::*;
use room::{Finish, Generation, Outcome, Role, Span};

use crate::room_kit::{cases, ms};
use crate::world::{BLOCK_TOKENS, BLOCKS, Fault, Losses, Reader, World, check_out};

const PAIRS: &[Role] = &[Role::Prefill, Role::Prefill, Role::Decode, Role::Decode];
const MIXED: &[Role] = &[Role::Mixed, Role::Mixed];
const ALL: &[Role] = &[Role::Prefill, Role::Decode, Role::Mixed];

/// Runs to the end, and checks all that must be true then.
fn settle(mut world: World) -> World {
    world.run(ms(120_000));
    for guest in &world.guests {
        check_out(guest);
    }
    world.assert_quiet();
    world
}

#[test]
fn undisturbed_answers_are_whole() {
    for roles in [PAIRS, MIXED, ALL] {
        let mut world = World::new(roles, Losses::default());
        for index in 0..8 {
            world.arrive(10 + index, 20, 5 + index, ms(60_000));
        }
        let world = settle(world);
        for guest in &world.guests {
            assert_eq!(
                guest.answers[0].1,
                Outcome::Completed(Finish::Stop),
                "{}",
                guest.room.id()
            );
        }
    }
}

#[test]
fn one_token_and_the_longest_answer() {
    for roles in [PAIRS, MIXED] {
        let mut world = World::new(roles, Losses::default());
        let pool = BLOCKS * BLOCK_TOKENS;
        world.arrive(10, 1, 1, ms(60_000));
        world.arrive(10, pool - 10, pool, ms(60_000));
        world.arrive(10, pool - 9, pool, ms(60_000));
        let outcomes: Vec<_> = settle(world)
            .guests
            .iter()
            .map(|guest| guest.answers[0].1)
            .collect();
        let length = Outcome::Completed(Finish::Length);
        assert_eq!(
            outcomes,
            [length, length, Outcome::Failed(room::Failure::TooLarge)]
        );
    }
}

#[test]
fn more_than_fits_takes_turns() {
    // Each grows to half a pool; a dozen at once cannot, and are evicted in turn.
    for roles in [PAIRS, MIXED] {
        let mut world = World::new(roles, Losses::default());
        for _ in 0..12 {
            world.arrive(8, 40, 40, ms(60_000));
        }
        let world = settle(world);
        for guest in &world.guests {
            assert_eq!(
                guest.answers[0].1,
                Outcome::Completed(Finish::Length),
                "{}",
                guest.room.id()
            );
        }
    }
}

#[test]
fn answers_go_on_when_a_worker_dies_or_is_cut_off() {
    for fault in [Fault::Kill, Fault::Cut] {
        for roles in [PAIRS, MIXED] {
            for index in 0..roles.len() {
                let mut world = World::new(roles, Losses::default());
                for _ in 0..4 {
                    world.arrive(10, 40, 30, ms(60_000));
                }
                world.plan(ms(40), fault(index));
                let world = settle(world);
                for guest in &world.guests {
                    assert_eq!(
                        guest.answers[0].1,
                        Outcome::Completed(Finish::Stop),
                        "{:?}",
                        fault(index)
                    );
                }
            }
        }
    }
}

#[test]
fn blocks_come_back_though_every_close_is_lost() {
    let losses = Losses {
        closes: true,
        ..Losses::default()
    };
    for roles in [PAIRS, MIXED] {
        let mut world = World::new(roles, losses);
        for index in 0..4 {
            world.arrive(10, 40, 40, ms(60_000));
            world.plan(ms(10 + 10 * index), Fault::Abort(usize::try_from(index).unwrap()));
        }
        world.run(ms(1_000));
        world.assert_quiet();
        settle(world);
    }
}

/// Its pauses are longer than any stall is let pass, and no fault.
#[test]
fn a_slow_reader_pauses_its_own_answer() {
    let lost = Losses {
        allows: true,
        ..Losses::default()
    };
    for losses in [Losses::default(), lost] {
        for roles in [PAIRS, MIXED, ALL] {
            let mut world = World::new(roles, losses);
            world.slow_readers(Reader {
                unread: 4,
                tokens: 4,
                pause: Span::from_millis(15_000),
            });
            for _ in 0..3 {
                world.arrive(10, 40, 20, ms(110_000));
            }
            for guest in &settle(world).guests {
                let id = guest.room.id();
                assert_eq!(guest.answers[0].1, Outcome::Completed(Finish::Stop), "{id}");
                assert_eq!(guest.room.generation(), Generation::FIRST, "{id}");
                assert_eq!(guest.most_unread, 4, "{id}");
            }
        }
    }
}

/// Each attempt may give one token more: that which ends its prefill.
#[test]
fn a_paused_answer_moves_and_is_still_paused() {
    for fault in [Fault::Kill, Fault::Cut] {
        for roles in [PAIRS, MIXED] {
            let mut world = World::new(roles, Losses::default());
            world.slow_readers(Reader {
                unread: 4,
                tokens: 4,
                pause: Span::from_millis(15_000),
            });
            world.arrive(10, 40, 20, ms(110_000));
            (0..roles.len()).for_each(|index| world.plan(ms(2_000), fault(index)));
            let world = settle(world);
            let guest = &world.guests[0];
            assert_eq!(guest.answers[0].1, Outcome::Completed(Finish::Stop));
            assert_eq!((guest.room.generation(), guest.most_unread), (Generation(2), 5));
        }
    }
}

fn reader() -> impl Strategy<Value = Option<Reader>> {
    let slow = (1..5u32, 1..5u32, 1..3_000u64).prop_map(|(unread, tokens, millis)| Reader {
        unread,
        tokens,
        pause: Span::from_millis(millis),
    });
    proptest::option::of(slow)
}

fn fault() -> impl Strategy<Value = (u64, Fault)> {
    let at = 0..3_000u64;
    let what = prop_oneof![
        6 => (0..8usize).prop_map(Fault::Abort),
        2 => (0..4usize).prop_map(Fault::Kill),
        2 => (0..4usize).prop_map(Fault::Cut),
    ];
    (at, what)
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn whatever_is_lost_or_repeated_everything_comes_back(
        roles in prop_oneof![Just(PAIRS), Just(MIXED), Just(ALL)],
        rooms in proptest::collection::vec((1..40u32, 1..50u32, 1..50u32, 500..30_000u64), 1..8),
        faults in proptest::collection::vec(fault(), 0..8),
        (closes, allows) in any::<(bool, bool)>(),
        reader in reader(),
        every in proptest::option::of(3..60u64),
        again in proptest::option::of(1..60u64),
    ) {
        let mut world = World::new(roles, Losses { closes, allows, every, again });
        if let Some(reader) = reader {
            world.slow_readers(reader);
        }
        for (positions, max_new, length, deadline) in rooms {
            world.arrive(positions, max_new, length, ms(deadline));
        }
        for (at, fault) in faults {
            world.plan(ms(at), fault);
        }
        settle(world);
    }
}
