//! The [`Host`]: one worker's side of the protocol. Decides; performs nothing.
//!
//! Every attempt that has blocks here is a *stay*, in one phase, with one deadline:
//!
//! ```text
//!             Reserve                  Prefill (nothing here yet)
//!                │                               │
//!          ┌─────▼────┐   Prefill        ┌───────▼────┐  first token   ┌───────────┐
//!          │ Reserved │─────────────────►│ Prefilling │───────────────►│ Published │
//!          └─────┬────┘  (mixed worker)  └───────┬────┘                └─────┬─────┘
//!           Pull │                   first token │ (mixed worker)            │ Release
//!          ┌─────▼────┐   read ended     ┌───────▼──┐                        │
//!          │ Pulling  │─────────────────►│ Decoding │─── finished ──► gone   │
//!          └──────────┘                  └──────────┘                        │
//!                                                                            ▼
//!   any of these ── Close, not in a digest, link over, deadline, failure,  ┌─────────┐  last proof
//!                   eviction, a later generation ─────────────────────────►│ Closing │─────────────► gone
//!                                                                          └─────────┘
//! ```
//!
//! A stay that nobody touches skips `Closing`. `Closing` lasts until the engine, the read and the offer that hold its
//! blocks are each *proven* over.
//!
//! ```text
//!   phase       waits for           ended by                                  then
//!   Reserved    Prefill or Pull     the request's end                         Failed(NoProgress)
//!   Prefilling  KV and first token  prefill_no_progress, anew with progress   the same
//!   Published   Release             published                                 the same
//!   Pulling     the end of a read   pull                                      the same
//!   Decoding    the next token      stall, anew with each                     the same
//!    paused      Allow               the request's end                         the same
//!   Closing     the last proof      proof, and nothing else                   told to stop again after every proof_retry
//! ```
//!
//! Nothing but a proof outlasts the request's deadline and `grace`. These are a second line: the owner's deadlines, its
//! digest and the end of its link come first.
//!
//! The owner hears `Closed` as the answer to its `Close` or `Release`, when nothing of the attempt is left. A stay can
//! be opened only by `Reserve` and `Prefill`, and never for a generation that was here already.
//!
//! When a growing sequence finds no block, the youngest stay whose blocks can come back within a step is evicted; its
//! owner goes on elsewhere. The oldest therefore always advances, and no stay waits for one that waits for it.
//!
//! Use: feed inputs; after each, take commands until there are none and perform them in order; call `handle_timeout` when
//! `poll_timeout` has passed.

mod allowance;
mod closing;
mod command;
mod config;
mod counters;
mod engine;
mod growth;
mod input;
mod legal;
mod opening;
mod owner;
mod stay;
mod sweep;
mod transfer;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::id::{Attempt, Generation};
use crate::ledger::{CacheChange, Ledger, Occupancy};
use crate::time::{Span, Time};

pub use command::{HostCommand, ToOwner};
pub use config::{HostLimits, HostSpec};
pub use counters::HostCounters;
pub use input::{EngineInput, FromOwner, HostInput, Job, Kept, TransferInput};
use stay::{Phase, Stay};
pub use stay::{StayCause, StayPhase, StayTransition, StayView};

/// The protocol state of one worker.
#[derive(Clone, Debug)]
pub struct Host {
    spec: HostSpec,
    ledger: Ledger,
    stays: BTreeMap<Attempt, Stay>,
    /// The deadline of each of them, the earliest first.
    deadlines: BTreeSet<(Time, Attempt)>,
    /// How many of them use a slot.
    slots: u32,
    /// Blocks that sequences in the engine wait for.
    wants: BTreeMap<Attempt, u32>,
    commands: VecDeque<HostCommand>,
    transitions: VecDeque<StayTransition>,
    counters: HostCounters,
    arrivals: u64,
    /// No new attempts, until they are wanted again.
    draining: bool,
    /// No new attempts any more.
    engine_gone: bool,
}

impl Host {
    /// A host with an empty pool and a running engine. A block has at least one position.
    #[must_use]
    pub fn new(mut spec: HostSpec) -> Self {
        spec.block_tokens = spec.block_tokens.max(1);
        Self {
            ledger: Ledger::new(spec.blocks, spec.limits.tombstones),
            spec,
            stays: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            slots: 0,
            wants: BTreeMap::new(),
            commands: VecDeque::new(),
            transitions: VecDeque::new(),
            counters: HostCounters::default(),
            arrivals: 0,
            draining: false,
            engine_gone: false,
        }
    }

    /// Takes in something that happened at `now`.
    pub fn handle_input(&mut self, now: Time, input: HostInput) {
        match input {
            HostInput::Owner { attempt, message } => self.on_owner(now, attempt, &message),
            HostInput::Digest { gateway, n, open } => self.on_digest(now, gateway, n, &open),
            HostInput::GatewayLost { gateway } => self.on_gateway_lost(now, gateway),
            HostInput::Engine { attempt, event } => self.on_engine(now, attempt, event),
            HostInput::EngineDown => self.on_engine_down(now),
            HostInput::Transfer { attempt, event } => self.on_transfer(now, attempt, event),
            HostInput::Drain => self.draining = true,
            HostInput::Undrain => self.draining = false,
        }
        self.serve_wants(now);
    }

    /// Acts on every deadline that has passed at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        let due = self.deadlines.iter().take_while(|(at, _)| *at <= now);
        let mut due: Vec<Attempt> = due.map(|(_, attempt)| *attempt).collect();
        // In order of their attempts, like all else that concerns many stays.
        due.sort_unstable();
        for attempt in due {
            self.on_deadline(now, attempt);
        }
        self.serve_wants(now);
    }

    /// The next thing to do. To be taken until there is none, after every input and every timeout.
    pub fn poll_command(&mut self) -> Option<HostCommand> {
        self.commands.pop_front()
    }

    /// When [`Host::handle_timeout`] has to be called at the latest; none while there is no stay.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let earliest = self.deadlines.first().map(|(at, _)| *at);
        debug_assert_eq!(earliest, self.stays.values().map(Stay::deadline).min());
        earliest
    }

    /// The next change of a stay's phase, oldest first.
    pub fn poll_transition(&mut self) -> Option<StayTransition> {
        self.transitions.pop_front()
    }

    /// Keeps the last `limit` changes of the prefix cache for [`Host::poll_cache_change`] from now on; none at first.
    pub fn follow_cache(&mut self, limit: usize) {
        self.ledger.follow(limit);
    }

    /// The next change of the prefix cache, oldest first. Those that nobody took in time are missing in the numbers.
    pub fn poll_cache_change(&mut self) -> Option<CacheChange> {
        self.ledger.poll_change()
    }

    /// What the host was made with.
    #[must_use]
    pub fn spec(&self) -> &HostSpec {
        &self.spec
    }

    /// Where the pool's blocks are.
    #[must_use]
    pub fn occupancy(&self) -> Occupancy {
        self.ledger.occupancy()
    }

    /// The ledger, to look at.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// All stays, in order of their attempts.
    pub fn stays(&self) -> impl Iterator<Item = StayView> {
        self.stays.iter().map(|(attempt, stay)| self.view(*attempt, stay))
    }

    /// How many stays there are.
    #[must_use]
    pub fn stays_len(&self) -> usize {
        self.stays.len()
    }

    /// One stay.
    #[must_use]
    pub fn stay(&self, attempt: Attempt) -> Option<StayView> {
        self.stays.get(&attempt).map(|stay| self.view(attempt, stay))
    }

    /// Slots in use: stays that are with the engine, or have the right to be.
    #[must_use]
    pub fn slots_used(&self) -> u32 {
        debug_assert_eq!(
            self.slots,
            count(
                self.stays
                    .iter()
                    .filter(|(attempt, stay)| self.uses_slot(**attempt, stay))
                    .count()
            )
        );
        self.slots
    }

    /// Positions of prompts that are still to be computed here.
    #[must_use]
    pub fn prefill_backlog(&self) -> u64 {
        let left = |stay: &Stay| u64::from(stay.positions.saturating_sub(stay.computed));
        self.stays
            .values()
            .filter(|stay| stay.kind() == StayPhase::Prefilling)
            .map(left)
            .sum()
    }

    /// Whether new attempts are refused: the worker is being drained, or its engine is gone.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining || self.engine_gone
    }

    /// What was counted.
    #[must_use]
    pub fn counters(&self) -> HostCounters {
        self.counters
    }

    fn view(&self, attempt: Attempt, stay: &Stay) -> StayView {
        stay.view(
            attempt,
            count(self.ledger.blocks(attempt).len()),
            self.ledger.holds(attempt),
        )
    }

    fn tell(&mut self, attempt: Attempt, message: ToOwner) {
        self.commands.push_back(HostCommand::Tell { attempt, message });
    }

    /// Moves a stay that is here to its next phase, which may last for `span` but not beyond the request.
    fn enter(&mut self, now: Time, attempt: Attempt, phase: Phase, span: Span, why: StayCause) {
        let Some(stay) = self.stays.get_mut(&attempt) else {
            return;
        };
        let from = Some(stay.kind());
        let deadline = match phase {
            // The request's deadline does not bound how long a proof may take.
            Phase::Closing { .. } => now + span,
            Phase::Decoding if stay.is_ahead() => stay.ends,
            _ => stay.ends.min(now + span),
        };
        let before = stay.deadline();
        stay.enter(now, phase, deadline);
        self.move_deadline(attempt, before, deadline);
        self.count_slot(attempt);
        self.record(StayTransition {
            at: now,
            attempt,
            from,
            to: Some(phase.kind()),
            why,
            holds: self.ledger.holds(attempt),
        });
    }

    /// The deadline of a stay is another one now.
    fn move_deadline(&mut self, attempt: Attempt, before: Time, after: Time) {
        if before != after {
            self.deadlines.remove(&(before, attempt));
            self.deadlines.insert((after, attempt));
        }
    }

    /// A stay has entered a phase, or somebody has let go of the blocks of one that is closing: whether it uses a slot may have changed.
    fn count_slot(&mut self, attempt: Attempt) {
        let uses = self
            .stays
            .get(&attempt)
            .is_some_and(|stay| self.uses_slot(attempt, stay));
        let Some(stay) = self.stays.get_mut(&attempt) else {
            return;
        };
        let used = std::mem::replace(&mut stay.uses_slot, uses);
        self.slots = self.slots + u32::from(uses) - u32::from(used);
    }

    fn record(&mut self, transition: StayTransition) {
        if self.transitions.len() >= self.spec.limits.transitions {
            self.transitions.pop_front();
            self.counters.transitions_lost += 1;
        }
        self.transitions.push_back(transition);
    }

    /// The attempts of the room's older generations that are here, oldest first.
    fn older_than(&self, attempt: Attempt) -> Vec<Attempt> {
        let first = Attempt {
            generation: Generation(0),
            ..attempt
        };
        self.stays
            .range(first..attempt)
            .map(|(older, _)| *older)
            .collect()
    }
}

/// A length as the protocol counts: pools and tables are far smaller than `u32::MAX`.
fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
