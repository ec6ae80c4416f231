//! Between the three vocabularies: what rooms decide with (`room`), what links carry (`wire`), what engines run (`engine`). Explicit,
//! so that none of them has to know another.

use std::time::Duration;

use room::{
    Attempt, AttemptError, BlockHash, Finish, Generation, NodeId, PhaseKind, Refusal, RoomId, Span, Time,
};
use wire::{Held, RoomKey};

/// A room's attempt as a link names it: the gateway is the link's.
pub(crate) fn room_key(attempt: Attempt) -> RoomKey {
    RoomKey {
        seq: attempt.room.seq,
        generation: attempt.generation.0,
    }
}

/// An attempt named on the link of `gateway`.
pub(crate) fn attempt(gateway: NodeId, key: RoomKey) -> Attempt {
    Attempt {
        room: RoomId {
            gateway,
            seq: key.seq,
        },
        generation: Generation(key.generation),
    }
}

/// An attempt that the gateway of a link wants kept.
pub(crate) fn kept(gateway: NodeId, kept: wire::Kept) -> room::Kept {
    room::Kept {
        attempt: attempt(gateway, kept.key),
        until: kept.until,
    }
}

/// An attempt as the data path names it.
pub(crate) fn transfer_key(attempt: Attempt) -> kv::TransferKey {
    kv::TransferKey {
        gateway: attempt.room.gateway.0,
        seq: attempt.room.seq,
        generation: attempt.generation.0,
    }
}

/// And back.
pub(crate) fn attempt_of_transfer(key: kv::TransferKey) -> Attempt {
    let room = RoomId {
        gateway: NodeId(key.gateway),
        seq: key.seq,
    };
    Attempt {
        room,
        generation: Generation(key.generation),
    }
}

/// The sizes that a host decides by.
pub(crate) fn work_to_host(
    work: &wire::Work,
    block_tokens: u32,
    until: u32,
    now: Time,
    deadline_ms: u64,
) -> room::Job {
    let positions = count(work.tokens.len());
    let hashes = engine::prefix::block_hashes(&work.tokens, block_tokens.max(1) as usize, work.salt);
    room::Job {
        positions,
        max_positions: positions.saturating_add(work.max_new),
        delivered: positions.saturating_sub(work.prompt_tokens),
        until,
        hashes: hashes.into_iter().map(BlockHash).collect(),
        deadline: now + Span::from_millis(deadline_ms),
    }
}

/// What remains until `deadline`, in whole milliseconds, at least one.
pub(crate) fn remaining_ms(deadline: Time, now: Time) -> u64 {
    (deadline - now).as_millis().max(1)
}

/// A span for tokio.
pub(crate) fn duration(span: Span) -> Duration {
    Duration::from_micros(span.micros)
}

/// A length as messages count it.
pub(crate) fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

pub(crate) fn sampling_to_engine(sampling: &wire::Sampling) -> engine::Sampling {
    engine::Sampling {
        temperature: sampling.temperature,
        top_p: sampling.top_p,
        top_k: sampling.top_k,
        min_p: sampling.min_p,
        seed: sampling.seed,
        presence_penalty: sampling.presence_penalty,
        frequency_penalty: sampling.frequency_penalty,
        logprobs: sampling.logprobs,
    }
}

pub(crate) fn sampling_to_wire(sampling: &engine::Sampling) -> wire::Sampling {
    wire::Sampling {
        temperature: sampling.temperature,
        top_p: sampling.top_p,
        top_k: sampling.top_k,
        min_p: sampling.min_p,
        seed: sampling.seed,
        presence_penalty: sampling.presence_penalty,
        frequency_penalty: sampling.frequency_penalty,
        logprobs: sampling.logprobs,
    }
}

pub(crate) fn token_out(token: u32, logprobs: Option<engine::TokenLogprobs>) -> wire::TokenOut {
    let logprobs = logprobs.map(|logprobs| wire::Logprobs {
        sampled: logprobs.sampled,
        top: logprobs.top,
    });
    wire::TokenOut { token, logprobs }
}

pub(crate) fn finish_from_engine(finish: engine::FinishReason) -> Finish {
    match finish {
        engine::FinishReason::Stop => Finish::Stop,
        engine::FinishReason::Length => Finish::Length,
    }
}

pub(crate) fn finish_to_wire(finish: Finish) -> wire::Finish {
    match finish {
        Finish::Stop => wire::Finish::Stop,
        Finish::Length => wire::Finish::Length,
    }
}

pub(crate) fn finish_from_wire(finish: wire::Finish) -> Finish {
    match finish {
        wire::Finish::Stop => Finish::Stop,
        wire::Finish::Length => Finish::Length,
    }
}

pub(crate) fn refusal_to_wire(why: Refusal) -> wire::Refusal {
    match why {
        Refusal::NoBlocks => wire::Refusal::NoBlocks,
        Refusal::NoSlot => wire::Refusal::NoSlot,
        Refusal::Draining => wire::Refusal::Draining,
        Refusal::TooLarge => wire::Refusal::TooLarge,
        Refusal::Stale => wire::Refusal::Stale,
        Refusal::OutOfOrder => wire::Refusal::OutOfOrder,
    }
}

pub(crate) fn refusal_from_wire(why: wire::Refusal) -> Refusal {
    match why {
        wire::Refusal::NoBlocks => Refusal::NoBlocks,
        wire::Refusal::NoSlot => Refusal::NoSlot,
        wire::Refusal::Draining => Refusal::Draining,
        wire::Refusal::TooLarge => Refusal::TooLarge,
        wire::Refusal::Stale => Refusal::Stale,
        wire::Refusal::OutOfOrder => Refusal::OutOfOrder,
    }
}

pub(crate) fn attempt_error_to_wire(why: AttemptError) -> wire::AttemptError {
    match why {
        AttemptError::WorkerLost => wire::AttemptError::WorkerLost,
        AttemptError::NoProgress(phase) => wire::AttemptError::NoProgress(phase_to_wire(phase)),
        AttemptError::PullFailed => wire::AttemptError::PullFailed,
        AttemptError::EngineFailed => wire::AttemptError::EngineFailed,
        AttemptError::Gap => wire::AttemptError::Gap,
        AttemptError::UnknownAttempt => wire::AttemptError::UnknownAttempt,
        AttemptError::Evicted => wire::AttemptError::Evicted,
        AttemptError::NoToken => wire::AttemptError::NoToken,
        AttemptError::Refused(why) => wire::AttemptError::Refused(refusal_to_wire(why)),
    }
}

pub(crate) fn attempt_error_from_wire(why: wire::AttemptError) -> AttemptError {
    match why {
        wire::AttemptError::WorkerLost => AttemptError::WorkerLost,
        wire::AttemptError::NoProgress(phase) => AttemptError::NoProgress(phase_from_wire(phase)),
        wire::AttemptError::PullFailed => AttemptError::PullFailed,
        wire::AttemptError::EngineFailed => AttemptError::EngineFailed,
        wire::AttemptError::Gap => AttemptError::Gap,
        wire::AttemptError::UnknownAttempt => AttemptError::UnknownAttempt,
        wire::AttemptError::Evicted => AttemptError::Evicted,
        wire::AttemptError::NoToken => AttemptError::NoToken,
        wire::AttemptError::Refused(why) => AttemptError::Refused(refusal_from_wire(why)),
    }
}

fn phase_to_wire(phase: PhaseKind) -> wire::WaitedIn {
    match phase {
        PhaseKind::Queued => wire::WaitedIn::Queued,
        PhaseKind::Reserving => wire::WaitedIn::Reserving,
        PhaseKind::Prefilling => wire::WaitedIn::Prefilling,
        PhaseKind::Pulling => wire::WaitedIn::Pulling,
        PhaseKind::Decoding => wire::WaitedIn::Decoding,
        PhaseKind::Draining => wire::WaitedIn::Draining,
        PhaseKind::Ended => wire::WaitedIn::Ended,
    }
}

fn phase_from_wire(phase: wire::WaitedIn) -> PhaseKind {
    match phase {
        wire::WaitedIn::Queued => PhaseKind::Queued,
        wire::WaitedIn::Reserving => PhaseKind::Reserving,
        wire::WaitedIn::Prefilling => PhaseKind::Prefilling,
        wire::WaitedIn::Pulling => PhaseKind::Pulling,
        wire::WaitedIn::Decoding => PhaseKind::Decoding,
        wire::WaitedIn::Draining => PhaseKind::Draining,
        wire::WaitedIn::Ended => PhaseKind::Ended,
    }
}

/// What a host says of a stay, in a heartbeat's answer.
pub(crate) fn held(stay: &room::StayView, now: Time) -> Held {
    let phase = match stay.phase {
        room::StayPhase::Reserved => wire::StayPhase::Reserved,
        room::StayPhase::Prefilling => wire::StayPhase::Prefilling,
        room::StayPhase::Published => wire::StayPhase::Published,
        room::StayPhase::Pulling => wire::StayPhase::Pulling,
        room::StayPhase::Decoding => wire::StayPhase::Decoding,
        room::StayPhase::Closing => wire::StayPhase::Closing,
    };
    Held {
        key: room_key(stay.attempt),
        phase,
        blocks: stay.blocks,
        age_ms: (now - stay.opened).as_millis(),
        deadline_ms: (stay.deadline - now).as_millis(),
    }
}

pub(crate) fn role_from_wire(role: wire::Role) -> Option<room::Role> {
    match role {
        wire::Role::Gateway => None,
        wire::Role::Prefill => Some(room::Role::Prefill),
        wire::Role::Decode => Some(room::Role::Decode),
        wire::Role::Mixed => Some(room::Role::Mixed),
    }
}

/// What the end of a link was, as the side sees it that was told so.
pub(crate) fn link_end(why: &mesh::DownReason) -> observe::LinkEnd {
    use mesh::DownReason;
    use observe::LinkEnd;
    match why {
        DownReason::PeerStopped | DownReason::Stopped | DownReason::Replaced => LinkEnd::InOrder,
        DownReason::Closed(_) => LinkEnd::Fence,
        DownReason::PeerClosed(_)
        | DownReason::Behind { .. }
        | DownReason::Silent { .. }
        | DownReason::NotReading { .. }
        | DownReason::Lost(_)
        | DownReason::Framing(_) => LinkEnd::Loss,
    }
}

/// Words about one attempt, as they may travel and are kept: on one line, and not longer than a sentence.
pub(crate) fn words(text: &str) -> String {
    on_one_line(text, wire::limits::MAX_WHY_BYTES)
}

/// A longer reason, as the wire takes it.
pub(crate) fn reason(text: &str) -> String {
    on_one_line(text, wire::limits::MAX_REASON_BYTES)
}

fn on_one_line(text: &str, most_bytes: usize) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut words: String = text.chars().map(plain).collect();
    words.truncate(words.floor_char_boundary(most_bytes));
    words
}

/// A length of time as the protocol counts it.
pub(crate) fn span(length: Duration) -> Span {
    Span {
        micros: u64::try_from(length.as_micros()).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_are_short_and_on_one_line() {
        for (text, expected) in [
            ("no progress", "no progress".to_owned()),
            ("two\r\nlines", "two  lines".to_owned()),
            (&*"w".repeat(201), "w".repeat(200)),
            // 199 bytes, and a character of two.
            (&*format!("{}\u{e9}", "w".repeat(199)), "w".repeat(199)),
        ] {
            assert_eq!(words(text), expected);
        }
    }
}
