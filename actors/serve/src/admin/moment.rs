//! A moment, on the clock that rooms are timed by and on the wall.

use std::time::{SystemTime, UNIX_EPOCH};

use room::Time;

const DAY_MS: u64 = 86_400_000;

/// Now, on both clocks.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Moment {
    /// On the node's own.
    pub(crate) now: Time,
    /// On the wall, in milliseconds since 1970; none if that clock is set to a time before.
    pub(crate) unix_ms: Option<u64>,
}

impl Moment {
    /// This one, which the node's clock calls `now`.
    pub(crate) fn of(now: Time) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        Self {
            now,
            unix_ms: since.and_then(|since| u64::try_from(since.as_millis()).ok()),
        }
    }

    /// Milliseconds since then.
    pub(crate) fn since_ms(&self, then: Time) -> u64 {
        (self.now - then).as_millis()
    }

    /// When that was, in UTC, as RFC 3339 has it.
    pub(crate) fn utc(&self, then: Time) -> Option<String> {
        let unix_ms = self.unix_ms?.checked_sub(self.since_ms(then))?;
        Some(rfc3339(unix_ms))
    }
}

/// The calendar's rule is counted from the first of March of the year 0, so that the day that some years have more comes last.
fn rfc3339(unix_ms: u64) -> String {
    const TO_1970: u64 = 719_468;
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let days = unix_ms / DAY_MS + TO_1970;
    let (era, of_era) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let since_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * since_march + 2) / 5 + 1;
    let (month, later) = match since_march {
        0..=9 => (since_march + 3, 0),
        _ => (since_march - 9, 1),
    };
    let year = 400 * era + year_of_era + later;
    let of_day = unix_ms % DAY_MS;
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, millis) = (of_day / 1_000 % 60, of_day % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use room::Time;

    use super::{Moment, rfc3339};

    #[test]
    fn a_moment_is_written_as_rfc_3339_has_it() {
        for (unix_ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_709_251_199_001, "2024-02-29T23:59:59.001Z"),
            (1_767_225_599_000, "2025-12-31T23:59:59.000Z"),
            (1_767_225_600_000, "2026-01-01T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(unix_ms), text);
        }
    }

    #[test]
    fn what_was_is_counted_back_from_now() {
        let then = Time { micros: 1_000_000 };
        let moment = Moment {
            now: Time { micros: 3_500_000 },
            unix_ms: Some(1_767_225_602_500),
        };
        assert_eq!(moment.since_ms(then), 2_500);
        assert_eq!(moment.utc(then).as_deref(), Some("2026-01-01T00:00:00.000Z"));
        let unset = Moment {
            unix_ms: Some(100),
            ..moment
        };
        assert_eq!(unset.utc(then), None);
    }
}
