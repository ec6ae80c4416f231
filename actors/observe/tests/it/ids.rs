//! Names of traces and spans.

use std::collections::BTreeSet;

use observe::{SpanId, SpanKind, Trace, TraceId};
use room::{Generation, NodeId, RoomId};

use crate::kit::{GATEWAY, ROOM};

#[test]
fn accepts_what_w3c_allows_and_nothing_else() {
    let parsed = Trace::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
    assert_eq!(parsed.id.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(parsed.parent.map(SpanId::bits), Some(0x00f0_67aa_0ba9_02b7));
    assert!(parsed.is_sampled());
    let later = Trace::parse("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-more").unwrap();
    assert!(!later.is_sampled());
    for bad in [
        "",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
    ] {
        assert_eq!(Trace::parse(bad), None, "{bad}");
    }
}

#[test]
fn what_a_client_is_told_it_could_have_said() {
    let trace = Trace {
        flags: 0xff,
        ..Trace::new(TraceId::new(5))
    };
    let header = trace.header(SpanId::new(6));
    assert_eq!(header, "00-00000000000000000000000000000005-0000000000000006-01");
    let said = Trace::parse(&header).unwrap();
    assert_eq!((said.id, said.parent), (trace.id, Some(SpanId::new(6))));
}

#[test]
fn zero_names_nothing() {
    assert_ne!(TraceId::new(0).bits(), 0);
    assert_ne!(SpanId::new(0).bits(), 0);
    assert_eq!(TraceId::parse("00000000000000000000000000000000"), None);
}

#[test]
fn each_span_has_a_name_of_its_own_that_everybody_can_compute() {
    let trace = TraceId::new(1);
    let mut names = BTreeSet::new();
    let mut made = 0;
    for kind in SpanKind::ALL {
        for generation in 0..4 {
            for worker in [GATEWAY, NodeId(1), NodeId(2)] {
                let id = SpanId::of(trace, ROOM, Generation(generation), worker, kind);
                assert_eq!(id, SpanId::of(trace, ROOM, Generation(generation), worker, kind));
                names.insert(id);
                made += 1;
            }
        }
    }
    for seq in 8..20 {
        names.insert(SpanId::of_room(trace, RoomId { seq, ..ROOM }, SpanKind::Request));
        names.insert(SpanId::of_room(
            TraceId::new(2 + u128::from(seq)),
            ROOM,
            SpanKind::Request,
        ));
        made += 2;
    }
    assert_eq!(names.len(), made);
    assert_eq!(
        SpanId::of_attempt(trace, ROOM, Generation(2), SpanKind::Pull),
        SpanId::of(trace, ROOM, Generation(2), GATEWAY, SpanKind::Pull)
    );
    assert_ne!(
        TraceId::of_room(ROOM),
        TraceId::of_room(RoomId { seq: 8, ..ROOM })
    );
}

#[test]
fn no_two_kinds_of_spans_have_one_name() {
    let names: BTreeSet<_> = SpanKind::ALL.map(SpanKind::name).into();
    assert_eq!(names.len(), SpanKind::ALL.len());
}
