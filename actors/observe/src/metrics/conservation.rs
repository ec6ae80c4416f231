//! What is equal when nothing is under way. A difference that stays is a leak, whoever forgot.

use super::levels::GatewayLevels;

/// Sizes of everything that has not ended.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub(super) struct Open {
    rooms: i64,
    histories: i64,
    addressed: i64,
    legs: i64,
    promises: i64,
    leases: i64,
    orphans: i64,
}

impl Open {
    /// Of a gateway. Histories are counted by events alone: opened and not yet ended.
    pub(super) fn new(gateway: &GatewayLevels, histories: i64) -> Self {
        let number = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
        let leases = gateway.workers.iter().map(|worker| worker.leases);
        let orphans = gateway.workers.iter().map(|worker| worker.orphans);
        Self {
            rooms: number(gateway.rooms.len()),
            histories,
            addressed: number(gateway.tables.addressed),
            legs: number(gateway.tables.legs),
            promises: number(gateway.tables.promises),
            leases: number(leases.sum()),
            orphans: number(orphans.sum()),
        }
    }

    /// Each by its name.
    pub(super) fn sizes(self) -> [(&'static str, i64); 6] {
        [
            ("rooms", self.rooms),
            ("histories", self.histories),
            ("owners", self.addressed),
            ("legs", self.legs),
            ("promises", self.promises),
            ("leases", self.leases),
        ]
    }
}

/// How far apart two of them are. All are zero when nothing is under way; while rooms come and go, what is heard of from workers lags behind by
/// a heartbeat.
pub(super) fn differences(open: Open) -> [(&'static str, i64); 5] {
    [
        // A room whose spans would never be made, or a span without a room.
        ("rooms_and_histories", open.rooms - open.histories),
        // A room that nobody owns, or an owner of nothing.
        ("rooms_and_owners", open.rooms - open.addressed),
        // What a worker holds and nobody expects, or the other way round.
        ("leases_and_legs", open.leases - open.legs),
        // What a worker holds for a room that has ended.
        ("leases_and_rooms", open.orphans),
        // Credit that was not given back. An attempt of two workers has two promises, as it has two legs in the end.
        (
            "promises_without_rooms",
            if open.rooms == 0 { open.promises } else { 0 },
        ),
    ]
}
