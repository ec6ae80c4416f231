//! Lengths of time as people read them.

/// A length of time in words: `740 ms`, `3.2 s`, `2 min 5 s`, `1 h 4 min`.
#[must_use]
pub fn lasting(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..120_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        120_000..7_200_000 => format!("{} min {} s", millis / 60_000, millis / 1_000 % 60),
        _ => format!("{} h {} min", millis / 3_600_000, millis / 60_000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::lasting;

    #[test]
    fn a_time_is_told_in_the_unit_that_fits() {
        for (millis, told) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1.0 s"),
            (3_250, "3.2 s"),
            (119_999, "119.9 s"),
            (125_000, "2 min 5 s"),
            (7_200_000, "2 h 0 min"),
        ] {
            assert_eq!(lasting(millis), told);
        }
    }
}
