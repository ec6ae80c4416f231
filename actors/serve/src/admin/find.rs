//! Which rooms are meant, and what is told of them.

use observe::explain::{Account, Holding, Known, Standing, account};
use observe::{Trace, TraceId};
use room::{Generation, NodeId, RoomId};
use runtime::{Find, RoomView, WorkerState};

use super::Office;
use super::moment::Moment;
use super::present::Present;

/// What a person may have meant, the likeliest first: a room's name, the number alone, a trace id, a `traceparent`, a request id.
pub(super) fn meant(text: &str, gateway: NodeId) -> Vec<Find> {
    let text = text.trim();
    let mut found = Vec::new();
    if let Some(room) = room_of(text, gateway) {
        found.push(Find::Room(room));
    }
    if let Some(trace) = TraceId::parse(text).or_else(|| Trace::parse(text).map(|trace| trace.id)) {
        found.push(Find::Trace(trace));
    }
    found.push(Find::Request(text.to_owned()));
    found
}

/// `66179c5f147a751e-2`, or `2` of this gateway.
pub(super) fn room_of(text: &str, gateway: NodeId) -> Option<RoomId> {
    let number = |text: &str| {
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| text.parse().ok()).flatten()
    };
    match text.split_once('-') {
        Some((node, seq)) if node.len() == 16 => Some(RoomId {
            gateway: NodeId(u64::from_str_radix(node, 16).ok()?),
            seq: number(seq)?,
        }),
        Some(_) => None,
        None => Some(RoomId {
            gateway,
            seq: number(text)?,
        }),
    }
}

/// What is told of the rooms that are meant: the latest last. None if there are none.
pub(super) fn accounts(office: &Office, text: &str) -> Vec<Account> {
    let gateway = &office.gateway;
    let found = meant(text, gateway.node())
        .iter()
        .map(|find| gateway.find(find))
        .find(|found| !found.is_empty())
        .unwrap_or_default();
    let present = Present::of(office);
    let Moment { now, unix_ms } = present.moment;
    let told = found.iter().map(|(view, history)| {
        let known = |worker| known(worker, view, &present);
        let peers: Vec<Known> = present.workers.iter().map(known).collect();
        let standing = Standing {
            now,
            unix_ms,
            waits_for: view.waits_for,
            no_worker: view.no_worker,
            deadline: view.deadline,
            most_faults: gateway.most_faults(),
            legs: &view.legs,
            peers: &peers,
            jaeger: office.about.jaeger.as_deref(),
        };
        account(history, &standing)
    });
    told.collect()
}

fn known(worker: &WorkerState, view: &RoomView, present: &Present) -> Known {
    let peer = &worker.peer;
    let of_room = peer.held.iter().filter(|held| held.key.seq == view.room.seq);
    Known {
        node: peer.node,
        name: peer.name.clone(),
        draining: peer.is_draining(),
        heard: peer.reported,
        admin: present.admin(worker),
        holds: of_room
            .map(|held| Holding {
                generation: Generation(held.key.generation),
                blocks: held.blocks,
                phase: format!("{:?}", held.phase).to_lowercase(),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use observe::TraceId;
    use room::{NodeId, RoomId};
    use runtime::Find;

    use super::meant;

    const HERE: NodeId = NodeId(0xab);

    fn room(gateway: u64, seq: u64) -> Find {
        Find::Room(RoomId {
            gateway: NodeId(gateway),
            seq,
        })
    }

    #[track_caller]
    fn check(text: &str, first: Option<Find>) {
        let mut expected: Vec<Find> = first.into_iter().collect();
        expected.push(Find::Request(text.trim().to_owned()));
        assert_eq!(meant(text, HERE), expected);
    }

    #[test]
    fn a_room_a_trace_or_a_request() {
        check("00000000000000cd-7", Some(room(0xcd, 7)));
        check("7", Some(room(0xab, 7)));
        check(" 7\n", Some(room(0xab, 7)));
        check("00000000000000cd-", None);
        check("-7", None);
        check("+7", None);
        check("99999999999999999999999", None);
        check("req_0123", None);
        check("a/b", None);
        let trace = || Some(Find::Trace(TraceId::new(0xabc)));
        check("00000000000000000000000000000abc", trace());
        check("00-00000000000000000000000000000abc-00000000000000ff-01", trace());
    }
}
