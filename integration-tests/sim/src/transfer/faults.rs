//! What goes wrong with reads, by chance or on command.

use std::time::Duration;

use rand::Rng;

use crate::random::Random;

/// What goes wrong with one read.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(crate) enum Fault {
    /// It fails at once, and never starts.
    Fail,
    /// Its endpoint fails when half of it has been taken: with it every other read of that endpoint.
    FailHalfway,
    /// The source gets to it only after this long.
    Late(Duration),
    /// One piece's send completes at the source, and nothing is delivered.
    LoseSend,
    /// One bit of a block is wrong where it lands.
    Corrupt,
    /// The source's offer is withdrawn as soon as sends of this read are in flight.
    WithdrawEarly,
    /// Its blocks take this many times as long.
    Slow(u32),
    /// The source hears of its completed sends only after this long: the pin holds on.
    LateCompletion(Duration),
    /// It asks with a capability that the source did not mint.
    WrongCapability,
    /// It asks for the generation before its own.
    StaleGeneration,
}

impl Fault {
    /// The name it is counted under.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fail => "kv: read fails at once",
            Self::FailHalfway => "kv: read fails half-way",
            Self::Late(_) => "kv: read late",
            Self::LoseSend => "kv: send completes, nothing delivered",
            Self::Corrupt => "kv: block corrupt",
            Self::WithdrawEarly => "kv: offer withdrawn under a read",
            Self::Slow(_) => "kv: read slow",
            Self::LateCompletion(_) => "kv: send completes late",
            Self::WrongCapability => "kv: read with a wrong capability",
            Self::StaleGeneration => "kv: read of a stale generation",
        }
    }

    /// Whether it needs pieces smaller than the read.
    pub(super) fn is_fine(self) -> bool {
        matches!(
            self,
            Self::FailHalfway | Self::LoseSend | Self::WithdrawEarly | Self::Slow(_)
        )
    }
}

/// The name under which bytes are counted that land in a block after its endpoint was closed by force, and before the end
/// of the read is told: for the first time, or once more.
pub(super) const LATE_BYTES: &str = "kv: bytes land after a forced close";
pub(super) const DUPLICATE_BYTES: &str = "kv: bytes land again after a forced close";
pub(super) const SLOW_CLOSE: &str = "kv: forced close takes long";

/// How a member dies.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(crate) enum Death {
    /// The process ends: its peers' endpoints fail soon after, where the path lets them know.
    Crash,
    /// The machine ends: nobody is told anything.
    Silent,
}

/// Probabilities, each from 0 to 1. A read meets at most one [`Fault`]; the sum of those is at most 1.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct Faults {
    /// Of [`Fault::Fail`].
    pub fail: f64,
    /// Of [`Fault::FailHalfway`].
    pub fail_halfway: f64,
    /// Of [`Fault::Late`], by up to [`Self::late_max`].
    pub late: f64,
    /// Of [`Fault::LoseSend`].
    pub lose_send: f64,
    /// Of [`Fault::Corrupt`].
    pub corrupt: f64,
    /// Of [`Fault::WithdrawEarly`].
    pub withdraw_early: f64,
    /// Of [`Fault::Slow`].
    pub slow: f64,
    /// Of [`Fault::LateCompletion`], by up to [`Self::late_max`].
    pub late_completion: f64,
    /// Of [`Fault::WrongCapability`].
    pub wrong_capability: f64,
    /// Of [`Fault::StaleGeneration`].
    pub stale_generation: f64,
    /// That a forced close takes up to [`super::Config::slow_close`].
    pub slow_close: f64,
    /// That bytes land in blocks of a read after its endpoint was closed by force.
    pub late_bytes: f64,
    /// Longest delay of what is late.
    pub late_max: Duration,
}

impl Faults {
    /// Nothing goes wrong.
    pub(crate) const NONE: Self = Self {
        fail: 0.0,
        fail_halfway: 0.0,
        late: 0.0,
        lose_send: 0.0,
        corrupt: 0.0,
        withdraw_early: 0.0,
        slow: 0.0,
        late_completion: 0.0,
        wrong_capability: 0.0,
        stale_generation: 0.0,
        slow_close: 0.0,
        late_bytes: 0.0,
        late_max: Duration::from_secs(3),
    };

    /// A `share` of all reads (0.0 to 1.0) meets a [`Fault`], each kind as often, and every second forced close is dirty.
    pub(crate) fn all(share: f64) -> Self {
        let each = share / 10.0;
        Self {
            fail: each,
            fail_halfway: each,
            late: each,
            lose_send: each,
            corrupt: each,
            withdraw_early: each,
            slow: each,
            late_completion: each,
            wrong_capability: each,
            stale_generation: each,
            slow_close: 0.2,
            late_bytes: 0.5,
            ..Self::NONE
        }
    }

    /// What a new read meets.
    pub(super) fn draw(&self, rng: &mut Random) -> Option<Fault> {
        // Always the same draws, so that one probability does not shift the luck of what follows.
        let (mut at, delay, factor) = (
            rng.random::<f64>(),
            self.late_max.mul_f64(rng.random()),
            rng.random_range(5..=50),
        );
        let table = [
            (self.fail, Fault::Fail),
            (self.fail_halfway, Fault::FailHalfway),
            (self.late, Fault::Late(delay)),
            (self.lose_send, Fault::LoseSend),
            (self.corrupt, Fault::Corrupt),
            (self.withdraw_early, Fault::WithdrawEarly),
            (self.slow, Fault::Slow(factor)),
            (self.late_completion, Fault::LateCompletion(delay)),
            (self.wrong_capability, Fault::WrongCapability),
            (self.stale_generation, Fault::StaleGeneration),
        ];
        for (probability, fault) in table {
            if at < probability {
                return Some(fault);
            }
            at -= probability;
        }
        None
    }
}
