//! The file of keys, as operators write it.
//!
//! ```toml
//! [[key]]
//! name = "team-a"
//! sha256 = "…"                  # of the key; `innkeeper key team-a` makes both
//! requests_per_minute = 600     # 0, or not there: as many as there come
//! tokens_per_minute = 200000
//! concurrent = 32
//! weight = 2                    # of its turns when requests wait: twice as many tokens as a key of weight 1, which is what there is otherwise
//! isolate = true                # finds nobody else's prompts in caches, and nobody finds its
//! expires = 2027-01-01          # the first day on which it is no longer good (UTC)
//! ```

use std::collections::HashSet;

use serde::Deserialize;
use toml::value::{Date, Datetime};

use super::Digest;
use super::meter::Allowance;

/// Most keys.
const KEYS: usize = 100_000;

/// A client's key and what it may do.
#[derive(Clone, Eq, PartialEq, Debug)]
pub(super) struct Key {
    /// Whose it is, for people.
    pub(super) name: String,
    pub(super) digest: Digest,
    pub(super) allowance: Allowance,
    /// What its turns are worth when requests wait.
    pub(super) weight: u16,
    /// Its prompts are found in caches by nobody else.
    pub(super) isolate: bool,
    /// The second, since 1970, from which it is no longer good.
    pub(super) expires_s: Option<u64>,
}

/// What is wrong with a file of keys.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("{0}")]
    Toml(String),
    #[error("{count} keys: there may be {KEYS}")]
    TooMany { count: usize },
    #[error("the key {name:?}: {why}")]
    Key { name: String, why: &'static str },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    key: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    sha256: String,
    #[serde(default)]
    requests_per_minute: u32,
    #[serde(default)]
    tokens_per_minute: u32,
    #[serde(default)]
    concurrent: u32,
    #[serde(default = "one")]
    weight: u16,
    #[serde(default)]
    isolate: bool,
    expires: Option<Datetime>,
}

/// Greatest weight.
const WEIGHT: u16 = 1_000;

fn one() -> u16 {
    1
}

/// Reads a file's text.
///
/// # Errors
/// If it is not TOML, has a field that does not exist, or a name or digest twice.
pub(super) fn read(text: &str) -> Result<Vec<Key>, FileError> {
    let written: Written = toml::from_str(text).map_err(|error| FileError::Toml(error.to_string()))?;
    let count = written.key.len();
    if count > KEYS {
        return Err(FileError::TooMany { count });
    }
    let keys: Vec<Key> = written.key.into_iter().map(key).collect::<Result<_, _>>()?;
    let (mut names, mut digests) = (HashSet::new(), HashSet::new());
    for key in &keys {
        if !names.insert(&key.name) {
            return Err(wrong(&key.name, "its name is there twice"));
        }
        if !digests.insert(key.digest) {
            return Err(wrong(&key.name, "its sha256 is there twice"));
        }
    }
    Ok(keys)
}

fn key(entry: Entry) -> Result<Key, FileError> {
    let Entry { name, sha256, .. } = &entry;
    check_name(name).map_err(|why| wrong(name, why))?;
    let digest =
        Digest::from_hex(sha256).ok_or_else(|| wrong(name, "sha256 must be 64 hexadecimal digits"))?;
    if !(1..=WEIGHT).contains(&entry.weight) {
        return Err(wrong(name, "weight must be 1 to 1000"));
    }
    let expires_s = match entry.expires {
        Some(at) => {
            Some(midnight_s(at).ok_or_else(|| wrong(name, "expires must be a day, such as 2027-01-31"))?)
        }
        None => None,
    };
    Ok(Key {
        digest,
        allowance: Allowance {
            requests_per_minute: entry.requests_per_minute,
            tokens_per_minute: entry.tokens_per_minute,
            concurrent: entry.concurrent,
        },
        weight: entry.weight,
        isolate: entry.isolate,
        expires_s,
        name: entry.name,
    })
}

/// What a key may be called.
pub(super) fn check_name(name: &str) -> Result<(), &'static str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    match (1..=64).contains(&name.len()) && name.bytes().all(fits) {
        true => Ok(()),
        false => Err("a name is 1 to 64 ASCII letters, digits, `-`, `_`, `.` and `@`"),
    }
}

fn wrong(name: &str, why: &'static str) -> FileError {
    FileError::Key {
        name: name.to_owned(),
        why,
    }
}

/// The second, since 1970, at which this day begins; none for anything but a day from then on.
fn midnight_s(at: Datetime) -> Option<u64> {
    let Datetime {
        date: Some(Date { year, month, day }),
        time: None,
        offset: None,
    } = at
    else {
        return None;
    };
    let year = u64::from(year);
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let february = if leap(year) { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = *months.get(usize::from(month).checked_sub(1)?)?;
    if year < 1970 || !(1..=length).contains(&u64::from(day)) {
        return None;
    }
    let years: u64 = (1970..year).map(|year| if leap(year) { 366 } else { 365 }).sum();
    let before: u64 = months.iter().take(usize::from(month) - 1).sum();
    Some((years + before + u64::from(day) - 1) * 86_400)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_key_has_its_limits() {
        let text = format!(
            "[[key]]\nname = \"a\"\nsha256 = \"{A}\"\n\n[[key]]\nname = \"b\"\nsha256 = \"{}\"\nrequests_per_minute = 6\n\
             tokens_per_minute = 7\nconcurrent = 8\nweight = 9\nisolate = true\nexpires = 2027-01-01\n",
            "0".repeat(64)
        );
        let keys = read(&text).expect("is right");
        let open = Key {
            name: "a".to_owned(),
            digest: Digest::of("abc"),
            allowance: Allowance::default(),
            weight: 1,
            isolate: false,
            expires_s: None,
        };
        let bounded = Key {
            name: "b".to_owned(),
            digest: Digest([0; 32]),
            allowance: Allowance {
                requests_per_minute: 6,
                tokens_per_minute: 7,
                concurrent: 8,
            },
            weight: 9,
            isolate: true,
            expires_s: Some(1_798_761_600),
        };
        assert_eq!(keys, [open, bounded]);
        assert_eq!(read("").expect("nobody may come in"), []);
    }

    #[track_caller]
    fn check_wrong(text: &str, said: &str) {
        let error = read(text).expect_err(text).to_string();
        assert!(error.contains(said), "{error}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let key = |name: &str, rest: &str| format!("[[key]]\nname = {name:?}\nsha256 = \"{A}\"\n{rest}\n");
        check_wrong("key = 1", "invalid type");
        check_wrong(&key("a", "tokens = 1"), "unknown field `tokens`");
        check_wrong(&key("a", "concurrent = -1"), "invalid value");
        check_wrong(
            &(key("a", "") + &key("b", "")),
            "the key \"b\": its sha256 is there twice",
        );
        let other = format!("[[key]]\nname = \"a\"\nsha256 = \"{}\"\n", "0".repeat(64));
        check_wrong(&(key("a", "") + &other), "its name is there twice");
        check_wrong(
            "[[key]]\nname = \"a\"\nsha256 = \"ik-secret\"",
            "64 hexadecimal digits",
        );
        check_wrong(&key("a b", ""), "a name is");
        check_wrong(&key("", ""), "a name is");
        check_wrong(&key("a", "weight = 0"), "weight must be 1 to 1000");
        check_wrong(&key("a", "weight = 1001"), "weight must be 1 to 1000");
        check_wrong(&key("a", "expires = 2027-01-01T00:00:00Z"), "must be a day");
    }

    #[track_caller]
    fn check_day(text: &str, seconds: Option<u64>) {
        let at: Datetime = text.parse().expect("a day");
        assert_eq!(midnight_s(at), seconds, "{text}");
    }

    #[test]
    fn a_day_begins_when_it_does() {
        // `date -u -d DAY +%s`
        check_day("1970-01-01", Some(0));
        check_day("2000-03-01", Some(951_868_800));
        check_day("2024-02-29", Some(1_709_164_800));
        check_day("2100-03-01", Some(4_107_542_400));
        check_day("1969-12-31", None);
    }
}
