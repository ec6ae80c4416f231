//! Values of flags, as people write them.

use std::net::{SocketAddr, ToSocketAddrs};

use anyhow::{Context, Result, ensure};

use crate::admin::{outcomes, phases, reasons};

/// A phase that a room can be open in.
pub(crate) fn phase(text: &str) -> Result<String, String> {
    one_of(text, "phase", &phases())
}

/// An outcome that a room can end with.
pub(crate) fn outcome(text: &str) -> Result<String, String> {
    one_of(text, "outcome", &outcomes())
}

/// A reason that an outcome can have.
pub(crate) fn reason(text: &str) -> Result<String, String> {
    one_of(text, "reason", &reasons())
}

/// `known` are the words there are, with commas between them.
fn one_of(text: &str, what: &str, known: &str) -> Result<String, String> {
    match known.split(", ").any(|word| word == text) {
        true => Ok(text.to_owned()),
        false => Err(format!("there is no such {what}: there are {known}")),
    }
}

/// A length of time in milliseconds: `500ms`, `10s`, `2m`, `1h`.
pub(crate) fn length_ms(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "" if digits > 0 => {
            return Err(format!(
                "it has no unit: {text}s is so many seconds, {text}ms milliseconds"
            ));
        }
        _ => return Err(LENGTH.to_owned()),
    };
    let length = number.parse::<u64>().ok();
    length
        .and_then(|length| length.checked_mul(factor))
        .ok_or_else(|| LENGTH.to_owned())
}

const LENGTH: &str = "a length of time is a whole number and ms, s, m or h, such as 500ms or 10s";

/// The address of an admin listener that is to be asked: `IP:PORT` or `HOST:PORT`, or the same as a URL, as it stands in the runbook and in a
/// browser.
///
/// # Errors
/// If it is none of these, or nobody knows the host.
pub(crate) fn asked_address(text: &str) -> Result<SocketAddr> {
    let bare = text.strip_prefix("http://").unwrap_or(text);
    let bare = bare.strip_suffix('/').unwrap_or(bare);
    let mistaken =
        || format!("--admin {text}: write it as HOST:PORT or http://HOST:PORT, such as 127.0.0.1:9090");
    ensure!(!bare.contains('/'), mistaken());
    let known = bare.to_socket_addrs().with_context(mistaken)?;
    let known: Vec<SocketAddr> = known.collect();
    // A name for both families: what listens on loopback listens over IPv4.
    let first = known.iter().find(|address| address.is_ipv4()).or(known.first());
    first
        .copied()
        .with_context(|| format!("--admin {text}: no address of that host is known"))
}

#[cfg(test)]
mod tests {
    use super::{asked_address, length_ms, outcome, phase, reason};

    #[test]
    fn a_length_of_time_has_a_unit() {
        for (text, millis) in [
            ("500ms", Some(500)),
            ("10s", Some(10_000)),
            ("2m", Some(120_000)),
            ("1h", Some(3_600_000)),
            ("10", None),
            ("s", None),
            ("", None),
            ("1.5s", None),
            ("-1s", None),
            ("10 s", None),
            ("10d", None),
            ("18446744073709551615h", None),
        ] {
            assert_eq!(length_ms(text).ok(), millis, "{text}");
        }
        let why = length_ms("10").expect_err("no unit");
        assert!(why.contains("10s is so many seconds"), "{why}");
    }

    #[test]
    fn a_word_is_one_of_those_that_there_are() {
        assert_eq!(phase("draining").as_deref(), Ok("draining"));
        for text in ["ended", "Queued", "", "queued, reserving"] {
            assert!(
                phase(text).is_err_and(|why| why.contains("queued, reserving")),
                "{text}"
            );
        }
        assert_eq!(outcome("expired").as_deref(), Ok("expired"));
        assert!(outcome("refused").is_err_and(|why| why.contains("completed, aborted, failed, expired")));
        assert_eq!(reason("client_gone").as_deref(), Ok("client_gone"));
        assert_eq!(
            reason("attempts_worker_lost").as_deref(),
            Ok("attempts_worker_lost")
        );
        assert!(reason("worker_lost").is_err_and(|why| why.contains("attempts_worker_lost")));
    }

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let found = asked_address(text).ok().map(|address| address.to_string());
        assert_eq!(found.as_deref(), expected, "{text}");
    }

    #[test]
    fn an_admin_listener_is_named_as_an_address_or_a_url() {
        let there = Some("127.0.0.1:45090");
        check("127.0.0.1:45090", there);
        check("http://127.0.0.1:45090", there);
        check("http://127.0.0.1:45090/", there);
        check("localhost:45090", there);
        check("http://localhost:45090/", there);
        check("[::1]:45090", Some("[::1]:45090"));
        for text in [
            "127.0.0.1",
            "https://127.0.0.1:45090",
            "http://127.0.0.1:45090/rooms",
            "",
            "http://",
        ] {
            check(text, None);
        }
    }
}
