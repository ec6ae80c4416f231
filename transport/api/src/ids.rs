//! Names for requests and answers.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

/// The longest request id taken from a client, in bytes.
const REQUEST_ID_BYTES: usize = 128;

/// The name of a request, in its extensions, its logs and the `x-request-id` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(pub String);

impl RequestId {
    /// The client's own, where it is sane, else a new one.
    pub(crate) fn choose(given: Option<&str>) -> Self {
        match given {
            Some(id) if is_sane(id) => Self(id.to_owned()),
            _ => Self(format!("req_{}", mint())),
        }
    }
}

/// Goes into logs and headers as it stands: no space, no control character, not long.
fn is_sane(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(&byte);
    !id.is_empty() && id.len() <= REQUEST_ID_BYTES && id.bytes().all(plain)
}

/// 128 bits as hexadecimal digits: unique, but no secret.
pub(crate) fn mint() -> String {
    // The standard library keys its hashers from the system's entropy.
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}

/// Seconds since the Unix epoch.
pub(crate) fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: Option<&str>, taken: bool) {
        let RequestId(id) = RequestId::choose(given);
        assert_eq!(given == Some(id.as_str()), taken, "{given:?} became {id}");
        assert!(is_sane(&id), "{id}");
    }

    #[test]
    fn a_sane_id_is_taken_and_any_other_replaced() {
        check(Some("abc-123_4.5:6"), true);
        check(Some(&"x".repeat(128)), true);
        check(Some(&"x".repeat(129)), false);
        check(Some("two words"), false);
        check(Some("line\nbreak"), false);
        check(Some(""), false);
        check(None, false);
    }

    #[test]
    fn minted_names_differ() {
        assert_ne!(mint(), mint());
        assert_eq!(mint().len(), 32);
    }
}
