//! Whatever comes in whatever order: the world around the host finds nothing to object to, and at the end all is back.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::{prop_assert, prop_assert_eq, proptest};

use room::{Attempt, EngineInput, FromOwner, Generation, Job, NodeId, RoomId, TransferInput};

use crate::host_kit::{job, kept};
use crate::host_world::{Op, World, finish};

const GATEWAYS: [NodeId; 2] = [NodeId(1), NodeId(2)];

fn attempts() -> impl Strategy<Value = Attempt> {
    (0..2_usize, 1..4_u64, 1..6_u32).prop_map(|(gateway, seq, generation)| Attempt {
        room: RoomId {
            gateway: GATEWAYS[gateway],
            seq,
        },
        generation: Generation(generation),
    })
}

/// Few texts, so that prefixes are shared; sizes from one position to more than the pool has.
fn jobs() -> impl Strategy<Value = Job> {
    let until = prop_oneof![3 => Just(u32::MAX), 1 => 0..6_u32];
    (0..3_u128, 0..26_u32, until).prop_map(|(text, positions, until)| Job {
        until,
        ..job(text, positions)
    })
}

fn from_owner() -> impl Strategy<Value = FromOwner> {
    prop_oneof![
        4 => jobs().prop_map(FromOwner::Reserve),
        4 => jobs().prop_map(FromOwner::Prefill),
        4 => Just(FromOwner::Pull { sampled: 1 }),
        2 => (0..20_u32).prop_map(|until| FromOwner::Allow { until }),
        1 => Just(FromOwner::Release),
        1 => Just(FromOwner::Close),
    ]
}

fn engine() -> impl Strategy<Value = EngineInput> {
    prop_oneof![
        3 => (1..26_u32).prop_map(|positions| EngineInput::Computed { positions }),
        4 => (1..3_u32, any::<bool>()).prop_map(|(count, last)| EngineInput::Sampled { count, finish: finish(last) }),
        3 => (0..4_u32).prop_map(|n| EngineInput::NeedBlocks { n }),
        1 => Just(EngineInput::Stopped),
        1 => Just(EngineInput::NoToken),
    ]
}

fn transfer() -> impl Strategy<Value = TransferInput> {
    prop_oneof![
        2 => Just(TransferInput::Offered),
        1 => Just(TransferInput::Withdrawn),
        3 => any::<bool>().prop_map(|ok| TransferInput::ReadEnded { ok }),
    ]
}

fn ops() -> impl Strategy<Value = Op> {
    let gateway = (0..2_usize).prop_map(|which| GATEWAYS[which]);
    prop_oneof![
        12 => (attempts(), from_owner()).prop_map(|(attempt, message)| Op::Owner(attempt, message)),
        12 => (attempts(), engine()).prop_map(|(attempt, event)| Op::Engine(attempt, event)),
        8 => (attempts(), transfer()).prop_map(|(attempt, event)| Op::Transfer(attempt, event)),
        1 => (attempts(), engine()).prop_map(|(attempt, event)| Op::Stray(attempt, event)),
        1 => (gateway.clone(), vec((attempts(), 0..20_u32), 0..6)).prop_map(|(gateway, open)| Op::Digest(gateway, open.into_iter().map(|(attempt, until)| kept(attempt, until)).collect())),
        1 => gateway.prop_map(Op::GatewayLost),
        1 => (0..12_000_u64).prop_map(Op::Pass),
    ]
}

/// After this a host takes nothing new, unless it is told to again and can.
fn last_call() -> impl Strategy<Value = Option<Op>> {
    prop_oneof![Just(None), Just(Some(Op::EngineDown)), Just(Some(Op::Drain))]
}

proptest! {
    #[test]
    fn whatever_happens_all_is_back_when_all_is_closed(
        mixed in any::<bool>(),
        before in vec(ops(), 0..200),
        last_call in last_call(),
        after in vec(ops(), 0..40),
        undrained in any::<bool>(),
    ) {
        let mut world = World::new(mixed);
        let takes_rooms = match last_call {
            None => true,
            Some(Op::Drain) => undrained,
            Some(_) => false,
        };
        let again = undrained.then_some(Op::Undrain);
        for op in before.into_iter().chain(last_call).chain(after).chain(again) {
            world.run(op);
        }
        world.close_all(&GATEWAYS);
        prop_assert_eq!(world.host.stays().count(), 0);
        prop_assert!(world.host.occupancy().is_quiescent(), "INV-08: {:?}", world.host.occupancy());
        prop_assert_eq!(world.host.poll_timeout(), None);
        prop_assert_eq!(world.host.slots_used(), 0);

        // And nothing else stands in the way of who comes next.
        let next = Attempt { room: RoomId { gateway: GATEWAYS[0], seq: 99 }, generation: Generation::FIRST };
        world.run(Op::Owner(next, FromOwner::Reserve(job(9, 20))));
        prop_assert_eq!(world.host.stay(next).is_some(), takes_rooms);
    }

    #[test]
    fn time_alone_ends_every_stay_but_for_its_proofs(mixed in any::<bool>(), ops in vec(ops(), 0..120)) {
        let mut world = World::new(mixed);
        for op in ops {
            world.run(op);
        }
        world.wait();
        prop_assert!(world.host.stays().all(|stay| !stay.waits_for.is_empty()));
        prop_assert_eq!(world.host.occupancy().leased, 0);
    }
}
