//! What a key has used, and whether it may use more. Decides alone: time is told.
//!
//! A limit of N a minute is a bucket that holds N and fills at N a minute. Of a bucket only one thing is kept: when it is full again, if
//! nothing more is taken (the "theoretical arrival time" of the generic cell rate algorithm, ITU-T I.371). Tokens are paid for as they
//! come, because nobody knows before how many an answer will have: a bucket may go into debt, and then the next request waits.

use std::time::{Duration, Instant};

/// In which a full bucket is used up, or an empty one filled.
const MINUTE: Duration = Duration::from_secs(60);

/// What a key may use; 0 is without a limit.
#[derive(Copy, Clone, Default, Eq, PartialEq, Debug)]
pub(super) struct Allowance {
    pub(super) requests_per_minute: u32,
    /// Of prompts and of answers together.
    pub(super) tokens_per_minute: u32,
    /// Requests under way at once.
    pub(super) concurrent: u32,
}

/// Which limit a request has met.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(super) enum Exceeded {
    /// And how long until the next one may come.
    Requests(Duration),
    /// And how long until the debt is paid.
    Tokens(Duration),
    Concurrent,
}

/// What a key has used.
#[derive(Debug)]
pub(super) struct Meter {
    allowance: Allowance,
    requests: Bucket,
    tokens: Bucket,
    /// Requests under way.
    open: u32,
}

impl Meter {
    pub(super) fn new(allowance: Allowance, now: Instant) -> Self {
        Self {
            allowance,
            requests: Bucket { full_at: now },
            tokens: Bucket { full_at: now },
            open: 0,
        }
    }

    /// Other limits from now on; what was used is used.
    pub(super) fn allow(&mut self, allowance: Allowance) {
        self.allowance = allowance;
    }

    /// Lets a request in, which is to [`leave`](Self::leave); or says what it has to wait for, and then it has used nothing.
    pub(super) fn enter(&mut self, now: Instant) -> Result<(), Exceeded> {
        let Allowance {
            requests_per_minute,
            tokens_per_minute,
            concurrent,
        } = self.allowance;
        if concurrent > 0 && self.open >= concurrent {
            return Err(Exceeded::Concurrent);
        }
        if let Some(wait) = self.requests.wait(requests_per_minute, now) {
            return Err(Exceeded::Requests(wait));
        }
        if let Some(wait) = self.tokens.wait(tokens_per_minute, now) {
            return Err(Exceeded::Tokens(wait));
        }
        self.requests.take(1, requests_per_minute, now);
        self.open += 1;
        Ok(())
    }

    /// A request that was let in has ended.
    pub(super) fn leave(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// Tokens that it has used.
    pub(super) fn charge(&mut self, tokens: u32, now: Instant) {
        self.tokens.take(tokens, self.allowance.tokens_per_minute, now);
    }
}

/// One limit by the minute.
#[derive(Debug)]
struct Bucket {
    /// When it is full again. So much of a minute as is left until then is what is missing in it.
    full_at: Instant,
}

impl Bucket {
    /// How long until there is one whole in it; none if there is.
    fn wait(&self, per_minute: u32, now: Instant) -> Option<Duration> {
        let missing = self.full_at.saturating_duration_since(now);
        let most = MINUTE.checked_sub(time_of(1, per_minute)?)?;
        missing.checked_sub(most).filter(|wait| !wait.is_zero())
    }

    fn take(&mut self, count: u32, per_minute: u32, now: Instant) {
        if let Some(time) = time_of(count, per_minute) {
            let from = self.full_at.max(now);
            // In how many centuries does not matter.
            self.full_at = from.checked_add(time).unwrap_or(from);
        }
    }
}

/// In which so many come in; none where there is no limit.
fn time_of(count: u32, per_minute: u32) -> Option<Duration> {
    // A minute of nanoseconds times any u32 is beyond u64.
    let nanos = MINUTE.as_nanos() * u128::from(count);
    let nanos = nanos.checked_div(u128::from(per_minute))?;
    Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(requests: u32, tokens: u32, concurrent: u32) -> (Meter, Instant) {
        let now = Instant::now();
        let allowance = Allowance {
            requests_per_minute: requests,
            tokens_per_minute: tokens,
            concurrent,
        };
        (Meter::new(allowance, now), now)
    }

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn a_minutes_requests_may_come_at_once_and_then_one_by_one() {
        let (mut meter, now) = meter(6, 0, 0);
        for _ in 0..6 {
            assert_eq!(meter.enter(now), Ok(()));
        }
        assert_eq!(meter.enter(now), Err(Exceeded::Requests(10 * S)));
        assert_eq!(meter.enter(now + 4 * S), Err(Exceeded::Requests(6 * S)));
        assert_eq!(meter.enter(now + 10 * S), Ok(()));
        assert_eq!(meter.enter(now + 10 * S), Err(Exceeded::Requests(10 * S)));
        // It holds a minute's, however long nobody came.
        let later = now + 3_600 * S;
        let let_in = (0..20).filter(|_| meter.enter(later).is_ok()).count();
        assert_eq!(let_in, 6);
    }

    #[test]
    fn a_debt_of_tokens_is_paid_before_the_next_request() {
        let (mut meter, now) = meter(0, 600, 0);
        assert_eq!(meter.enter(now), Ok(()));
        meter.charge(599, now);
        assert_eq!(meter.enter(now), Ok(()), "one is left");
        meter.charge(1, now);
        assert_eq!(
            meter.enter(now),
            Err(Exceeded::Tokens(Duration::from_millis(100)))
        );
        // Ten a second come in: 100 of debt, and one to begin with.
        meter.charge(100, now);
        assert_eq!(
            meter.enter(now),
            Err(Exceeded::Tokens(Duration::from_millis(10_100)))
        );
        assert_eq!(meter.enter(now + 11 * S), Ok(()));
    }

    #[test]
    fn a_request_that_is_refused_uses_nothing() {
        let (mut meter, now) = meter(2, 1, 1);
        assert_eq!(meter.enter(now), Ok(()));
        for _ in 0..5 {
            assert_eq!(meter.enter(now), Err(Exceeded::Concurrent));
        }
        meter.charge(1, now);
        meter.leave();
        for _ in 0..5 {
            assert_eq!(meter.enter(now), Err(Exceeded::Tokens(60 * S)));
        }
        assert_eq!(meter.enter(now + 60 * S), Ok(()));
    }

    #[test]
    fn as_many_at_once_as_are_allowed() {
        let (mut meter, now) = meter(0, 0, 2);
        assert_eq!((meter.enter(now), meter.enter(now)), (Ok(()), Ok(())));
        assert_eq!(meter.enter(now), Err(Exceeded::Concurrent));
        meter.leave();
        assert_eq!(meter.enter(now), Ok(()));
        meter.allow(Allowance::default());
        for _ in 0..100 {
            assert_eq!(meter.enter(now), Ok(()));
        }
    }

    #[test]
    fn limits_change_and_what_was_used_stays_used() {
        let (mut meter, now) = meter(60, 0, 0);
        for _ in 0..60 {
            assert_eq!(meter.enter(now), Ok(()));
        }
        assert_eq!(meter.enter(now), Err(Exceeded::Requests(S)));
        meter.allow(Allowance {
            requests_per_minute: 120,
            ..Allowance::default()
        });
        assert_eq!(meter.enter(now), Err(Exceeded::Requests(S / 2)));
    }

    #[test]
    fn nothing_overflows() {
        let (mut meter, now) = meter(u32::MAX, 1, 0);
        assert_eq!(meter.enter(now), Ok(()));
        meter.charge(u32::MAX, now);
        assert!(matches!(meter.enter(now), Err(Exceeded::Tokens(_))));
    }

    /// However requests come: never more than a bucket holds and what has come into it since.
    #[test]
    fn never_more_than_is_allowed() {
        for gap_ms in [1_u64, 7, 90, 100, 110, 1_000] {
            let (mut meter, start) = meter(600, 0, 0);
            let mut let_in = 0_u64;
            for step in 0..5_000 {
                let passed_ms = step * gap_ms;
                if meter.enter(start + Duration::from_millis(passed_ms)).is_ok() {
                    let_in += 1;
                }
                assert!(
                    let_in <= 600 + passed_ms / 100,
                    "every {gap_ms} ms: {let_in} after {passed_ms} ms"
                );
            }
            assert!(let_in >= (5_000.min(600 + 5_000 * gap_ms / 100)) - 1, "{let_in}");
        }
    }
}
