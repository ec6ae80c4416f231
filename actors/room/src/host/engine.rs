//! Reports of the engine.

use crate::host::{EngineInput, Host, HostCommand, Phase, StayCause, StayPhase, ToOwner};
use crate::id::Attempt;
use crate::ledger::Hold;
use crate::outcome::{AttemptError, Finish};
use crate::time::Time;

impl Host {
    pub(super) fn on_engine(&mut self, now: Time, attempt: Attempt, event: EngineInput) {
        let Some(phase) = self.stays.get(&attempt).map(|stay| stay.phase()) else {
            self.counters.late_reports += 1;
            return;
        };
        if !self.ledger.holds(attempt).has(Hold::Engine) {
            self.counters.late_reports += 1;
            return;
        }
        match (event, phase) {
            (EngineInput::Stopped, _) => self.on_left(now, attempt, phase, AttemptError::EngineFailed),
            (EngineInput::NoToken, _) => {
                self.ledger.distrust(attempt);
                self.on_left(now, attempt, phase, AttemptError::NoToken);
            }
            (EngineInput::Sampled { count, finish }, _) => {
                self.on_sampled(now, attempt, phase, count, finish);
            }
            // What a closing stay still computes is of no use to anybody.
            (_, Phase::Closing { .. }) => {}
            (EngineInput::Computed { positions }, _) => self.on_computed(now, attempt, phase, positions),
            (EngineInput::NeedBlocks { n }, _) => self.on_need_blocks(now, attempt, n),
        }
    }

    fn on_computed(&mut self, now: Time, attempt: Attempt, phase: Phase, positions: u32) {
        let before = self.stays.get(&attempt).map_or(0, |stay| stay.computed);
        self.note_computed(attempt, positions);
        if positions > before && phase.kind() == StayPhase::Prefilling {
            self.rearm(now, attempt);
            self.tell(attempt, ToOwner::Progress { positions });
        }
    }

    fn on_sampled(&mut self, now: Time, attempt: Attempt, phase: Phase, count: u32, finish: Option<Finish>) {
        let whole = self.stays.get(&attempt).is_some_and(|stay| stay.whole);
        if !whole || finish.is_some() {
            self.ledger.release(attempt, Hold::Engine);
        }
        if let Phase::Closing { .. } = phase {
            return self.settle(now, attempt);
        }
        self.tell_tokens(attempt, count);
        if phase == Phase::Prefilling {
            let positions = self.stays.get(&attempt).map_or(0, |stay| stay.positions);
            self.note_computed(attempt, positions);
        }
        match (finish, phase) {
            (Some(finish), _) => self.finish(now, attempt, finish),
            (None, Phase::Prefilling) if !whole => self.publish(now, attempt),
            (None, Phase::Prefilling) => {
                self.enter(
                    now,
                    attempt,
                    Phase::Decoding,
                    self.spec.limits.stall,
                    StayCause::Engine,
                );
            }
            (None, _) => self.rearm(now, attempt),
        }
    }

    fn tell_tokens(&mut self, attempt: Attempt, count: u32) {
        let Some(stay) = self.stays.get_mut(&attempt) else {
            return;
        };
        let from = stay.answered;
        stay.answered = from.saturating_add(count);
        if count > 0 {
            self.tell(attempt, ToOwner::Tokens { from, count });
        }
    }

    fn finish(&mut self, now: Time, attempt: Attempt, finish: Finish) {
        let answered = self.stays.get(&attempt).map_or(0, |stay| stay.answered);
        self.tell(attempt, ToOwner::Finished { finish, answered });
        self.leave(now, attempt, false, StayCause::Finished);
    }

    fn publish(&mut self, now: Time, attempt: Attempt) {
        if self.ledger.hold(attempt, Hold::Offer) {
            let blocks = self.ledger.blocks(attempt).to_vec();
            self.commands.push_back(HostCommand::Offer { attempt, blocks });
            self.enter(
                now,
                attempt,
                Phase::Published,
                self.spec.limits.published,
                StayCause::Engine,
            );
        }
    }

    /// The sequence is out: as asked, or with this error.
    fn on_left(&mut self, now: Time, attempt: Attempt, phase: Phase, error: AttemptError) {
        self.ledger.release(attempt, Hold::Engine);
        match phase {
            Phase::Closing { .. } => self.settle(now, attempt),
            _ => self.fail(now, attempt, error),
        }
    }

    /// The engine's end is proof that it touches nothing. Whoever is in it, or counted on it, fails.
    pub(super) fn on_engine_down(&mut self, now: Time) {
        self.engine_gone = true;
        let all: Vec<Attempt> = self.stays.keys().copied().collect();
        for attempt in all {
            let Some(kind) = self.stays.get(&attempt).map(|stay| stay.kind()) else {
                continue;
            };
            self.ledger.release(attempt, Hold::Engine);
            match kind {
                StayPhase::Closing => self.settle(now, attempt),
                // The KV is computed and needs no engine any more.
                StayPhase::Published => {}
                _ => self.fail(now, attempt, AttemptError::EngineFailed),
            }
        }
    }

    /// There was progress: the phase's clock starts anew.
    pub(super) fn rearm(&mut self, now: Time, attempt: Attempt) {
        let Some(stay) = self.stays.get_mut(&attempt) else {
            return;
        };
        let deadline = match stay.kind() {
            StayPhase::Prefilling => now + self.spec.limits.prefill_no_progress,
            _ if stay.is_ahead() => stay.ends,
            _ => now + self.spec.limits.stall,
        };
        let (before, after) = (stay.deadline(), stay.ends.min(deadline));
        stay.rearm(after);
        self.move_deadline(attempt, before, after);
    }
}
