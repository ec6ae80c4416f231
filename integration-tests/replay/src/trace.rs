//! Reading traces.
//!
//! * Mooncake's (`conversation_trace.jsonl` in the repository kvcache-ai/Mooncake): milliseconds, lengths in tokens, and an id for each
//!   block of 512 tokens that stands for the whole prompt up to there. Times are in ticks of three seconds; requests of one tick are
//!   spread evenly over it, in their order.
//! * Azure's (`AzureLLMInferenceTrace_conv.csv` in Azure/AzurePublicDataset): times and lengths only, so nothing is ever shared.

use std::path::Path;
use std::sync::Arc;

use room::BlockHash;
use serde::Deserialize;

/// Tokens that an id of Mooncake's trace stands for, and so a block here.
pub const BLOCK_TOKENS: u32 = 512;

/// How far requests of one and the same time are spread at most, in microseconds.
const TICK_US: u64 = 3_000_000;

/// One request.
#[derive(Clone, Eq, PartialEq, Debug)]
pub struct Request {
    /// When it comes, in microseconds since the trace began.
    pub arrival_us: u64,
    /// Tokens of the prompt; at least 1.
    pub prompt: u32,
    /// Tokens of the answer; at least 1.
    pub answer: u32,
    /// Names of the prompt's full blocks, in order.
    pub hashes: Arc<[BlockHash]>,
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file.
    #[error("cannot read the trace: {0}")]
    Read(#[from] std::io::Error),
    /// One of its lines.
    #[error("line {line} of the trace: {why}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

#[derive(Deserialize)]
struct Mooncake {
    timestamp: u64,
    input_length: u32,
    output_length: u32,
    hash_ids: Vec<u64>,
}

/// A trace, by the extension of its file: `jsonl` is Mooncake's format, `csv` Azure's. In order of arrival.
///
/// # Errors
/// When the file or one of its lines cannot be read.
pub fn read(path: &Path) -> Result<Vec<Request>, TraceError> {
    let text = std::fs::read_to_string(path)?;
    let is_csv = path.extension().is_some_and(|extension| extension == "csv");
    let mut requests = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() || (is_csv && at == 0) {
            continue;
        }
        let parsed = if is_csv { azure(line, at) } else { mooncake(line) };
        requests.push(parsed.map_err(|why| TraceError::Line { line: at + 1, why })?);
    }
    requests.sort_by_key(|request| request.arrival_us);
    let first = requests.first().map_or(0, |request| request.arrival_us);
    for request in &mut requests {
        request.arrival_us -= first;
    }
    spread(&mut requests);
    Ok(requests)
}

/// The same requests, coming so many times as fast.
#[must_use]
pub fn at_speed(requests: &[Request], speed: f64) -> Vec<Request> {
    let faster = |request: &Request| Request {
        arrival_us: scaled(request.arrival_us, speed),
        ..request.clone()
    };
    requests.iter().map(faster).collect()
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "hours in microseconds are far below 2^53, and a speed is positive"
)]
fn scaled(us: u64, speed: f64) -> u64 {
    (us as f64 / speed.max(1e-6)) as u64
}

fn mooncake(line: &str) -> Result<Request, String> {
    let parsed: Mooncake = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let full = (parsed.input_length / BLOCK_TOKENS) as usize;
    let hashes = parsed.hash_ids.iter().take(full);
    Ok(Request {
        arrival_us: parsed.timestamp * 1_000,
        prompt: parsed.input_length.max(1),
        answer: parsed.output_length.max(1),
        hashes: hashes.map(|id| BlockHash(u128::from(*id))).collect(),
    })
}

fn azure(line: &str, at: usize) -> Result<Request, String> {
    let fields: Vec<&str> = line.trim().split(',').collect();
    let [time, prompt, answer] = fields[..] else {
        return Err(format!("{} fields, and not 3", fields.len()));
    };
    let prompt: u32 = prompt.parse().map_err(|error| format!("{error}"))?;
    let answer: u32 = answer.parse().map_err(|error| format!("{error}"))?;
    let own = (at as u128) << 64;
    Ok(Request {
        arrival_us: moment(time).ok_or_else(|| format!("{time} is no time"))?,
        prompt: prompt.max(1),
        answer: answer.max(1),
        hashes: (0..prompt / BLOCK_TOKENS)
            .map(|block| BlockHash(own | u128::from(block)))
            .collect(),
    })
}

/// Microseconds since the beginning of the month, of `2023-11-16 18:15:46.6805900`.
fn moment(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(' ')?;
    let day: u64 = date.rsplit('-').next()?.parse().ok()?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut seconds = day * 86_400;
    for (part, unit) in clock.split(':').zip([3_600, 60, 1]) {
        seconds += part.parse::<u64>().ok()? * unit;
    }
    let micros: String = fraction.chars().chain("000000".chars()).take(6).collect();
    Some(seconds * 1_000_000 + micros.parse::<u64>().ok()?)
}

/// Spreads requests that came at one time over the time to the next, a tick at most.
fn spread(requests: &mut [Request]) {
    let mut begin = 0;
    while begin < requests.len() {
        let at = requests[begin].arrival_us;
        let same = requests[begin..]
            .iter()
            .take_while(|r| r.arrival_us == at)
            .count();
        let next = requests.get(begin + same).map_or(at + TICK_US, |r| r.arrival_us);
        let room = (next - at).min(TICK_US);
        for (n, request) in requests[begin..begin + same].iter_mut().enumerate() {
            request.arrival_us = at + room * n as u64 / same as u64;
        }
        begin += same;
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_TOKENS, azure, moment, mooncake, spread};

    #[test]
    fn only_full_blocks_have_names() {
        let line = r#"{"timestamp": 3000, "input_length": 1100, "output_length": 7, "hash_ids": [0, 5, 9]}"#;
        let request = mooncake(line).unwrap();
        assert_eq!(
            (request.arrival_us, request.prompt, request.answer),
            (3_000_000, 1_100, 7)
        );
        let names: Vec<u128> = request.hashes.iter().map(|hash| hash.0).collect();
        assert_eq!(names, [0, 5]);
        assert!(mooncake("{}").is_err());
    }

    #[test]
    fn azure_shares_nothing() {
        let one = azure("2023-11-16 18:15:46.6805900,1200,44", 1).unwrap();
        let other = azure("2023-11-16 18:15:50.9951690,1200,109", 2).unwrap();
        assert_eq!(one.hashes.len(), (1_200 / BLOCK_TOKENS) as usize);
        assert!(one.hashes.iter().all(|hash| !other.hashes.contains(hash)));
        assert_eq!(other.arrival_us - one.arrival_us, 4_314_579);
        assert_eq!(moment("yesterday"), None);
        assert!(azure("2023-11-16 18:15:46,1", 1).is_err());
    }

    #[test]
    fn a_tick_is_spread_in_order() {
        let at = |ms| {
            mooncake(&format!(
                r#"{{"timestamp": {ms}, "input_length": 1, "output_length": 1, "hash_ids": [0]}}"#
            ))
            .unwrap()
        };
        let mut requests = [at(0), at(0), at(3_000), at(60_000), at(60_000)];
        spread(&mut requests);
        let times: Vec<u64> = requests.iter().map(|r| r.arrival_us / 1_000).collect();
        assert_eq!(times, [0, 1_500, 3_000, 60_000, 61_500]);
    }
}
