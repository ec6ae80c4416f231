//! Rooms that stay in a phase for as long as a cell needs: what "in each phase" means on real processes.

use serde_json::{Value, json};

use super::ctx::Ctx;
use super::load::Guest;
use crate::admin::Room;

/// A phase that a room is kept in.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(crate) enum Phase {
    /// Decode has granted, and nobody hears of it, until the phase's own deadline of 2 s.
    Reserving,
    /// Every step of prefill takes long.
    Prefilling,
    /// Reads do not start.
    Pulling,
    /// Every step of decode takes long.
    Decoding,
}

/// A step that is slow enough to be hit.
const SLOW_STEP_MS: u64 = 400;

impl Phase {
    /// As the gateway calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Reserving => "reserving",
            Self::Prefilling => "prefilling",
            Self::Pulling => "pulling",
            Self::Decoding => "decoding",
        }
    }

    /// The processes whose switches hold a room in it, by the beginning of their names, and how.
    fn hold(self) -> (&'static str, Value) {
        match self {
            Self::Reserving => ("decode", json!({ "frames": { "reserved": "drop" } })),
            Self::Prefilling => ("prefill", json!({ "engine": { "step_ms": SLOW_STEP_MS } })),
            Self::Pulling => ("decode", json!({ "reads": { "does": "hold_start" } })),
            Self::Decoding => ("decode", json!({ "engine": { "step_ms": SLOW_STEP_MS } })),
        }
    }
}

/// A guest whose room is in a phase, and stays there until [`let_go`].
pub(crate) struct Held {
    pub(crate) guest: Guest,
    pub(crate) room: Room,
}

impl Held {
    /// The worker of a role that its room has something at.
    pub(crate) fn worker(&self, role: &str) -> String {
        let mut holders = self.room.held_by.iter().map(|held| held.worker.clone());
        let found = holders.find(|worker| worker.starts_with(role));
        found.unwrap_or_else(|| panic!("no {role} worker holds anything for {:?}", self.room))
    }
}

/// A guest with a new request, once its room is in this phase.
pub(crate) async fn hold(ctx: &mut Ctx, phase: Phase, request: &Value) -> Held {
    set(ctx, phase).await;
    let guest = Guest::arrives(ctx, request);
    let room = arrived(ctx, phase).await;
    Held { guest, room }
}

/// Sets the switches that hold rooms in a phase.
pub(crate) async fn set(ctx: &Ctx, phase: Phase) {
    let (role, switches) = phase.hold();
    for name in ctx.cluster.names().iter().filter(|name| name.starts_with(role)) {
        ctx.fault(name, switches.clone()).await;
    }
}

/// The first room that is in this phase, which one comes to.
pub(crate) async fn arrived(ctx: &Ctx, phase: Phase) -> Room {
    let there = || async {
        let rooms = ctx.cluster.rooms().await;
        rooms.into_iter().find(|room| {
            // One that is decoding has shown it.
            room.phase == phase.name() && (phase != Phase::Decoding || room.delivered_tokens > 1)
        })
    };
    let what = format!("a room that is {}", phase.name());
    ctx.cluster.until(&what, there).await.0
}

/// No phase holds anybody any more, at those who live.
pub(crate) async fn let_go(ctx: &Ctx, except: &str) {
    for name in ctx.cluster.names().iter().filter(|name| *name != except) {
        ctx.calm(name).await;
    }
}
