//! What the tests of the host share: a small worker, and how to read what it says.

use room::{
    Attempt, BlockHash, BlockId, EngineInput, FromOwner, Generation, Host, HostCommand, HostInput,
    HostLimits, HostSpec, Job, Kept, NodeId, Report, RoomId, Span, Time, ToOwner, TransferInput,
};

pub(crate) const BLOCK_TOKENS: u32 = 4;
pub(crate) const BLOCKS: u32 = 12;
pub(crate) const SLOTS: u32 = 3;
pub(crate) const GATEWAY: NodeId = NodeId(1);

pub(crate) fn at(millis: u64) -> Time {
    Time::default() + Span::from_millis(millis)
}

pub(crate) fn attempt(seq: u64, generation: u32) -> Attempt {
    Attempt {
        room: RoomId {
            gateway: GATEWAY,
            seq,
        },
        generation: Generation(generation),
    }
}

/// A prompt of `positions` whose answer may have as many again; its contents are named after `text`.
pub(crate) fn job(text: u128, positions: u32) -> Job {
    Job {
        positions,
        max_positions: positions * 2,
        delivered: 0,
        until: u32::MAX,
        hashes: (0..u128::from(positions / BLOCK_TOKENS))
            .map(|i| BlockHash(text * 1_000 + i))
            .collect(),
        deadline: at(60_000),
    }
}

/// As a digest lists it, with leave to go so far.
pub(crate) fn kept(attempt: Attempt, until: u32) -> Kept {
    Kept { attempt, until }
}

pub(crate) fn spec(mixed: bool) -> HostSpec {
    HostSpec {
        block_tokens: BLOCK_TOKENS,
        blocks: BLOCKS,
        slots: SLOTS,
        mixed,
        limits: HostLimits::default(),
    }
}

/// A host under test at a time that only tests move.
pub(crate) struct Worker {
    pub(crate) host: Host,
    pub(crate) now: Time,
}

impl Worker {
    pub(crate) fn new(mixed: bool) -> Self {
        Self {
            host: Host::new(spec(mixed)),
            now: at(1_000),
        }
    }

    pub(crate) fn feed(&mut self, input: HostInput) -> Vec<String> {
        self.host.handle_input(self.now, input);
        self.commands()
    }

    pub(crate) fn commands(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.host.poll_command())
            .map(|command| show(&command))
            .collect()
    }

    /// Lets time pass to the next deadline.
    pub(crate) fn timeout(&mut self) -> Vec<String> {
        if let Some(deadline) = self.host.poll_timeout() {
            self.now = self.now.max(deadline);
            self.host.handle_timeout(self.now);
        }
        self.commands()
    }

    pub(crate) fn owner(&mut self, attempt: Attempt, message: FromOwner) -> Vec<String> {
        self.feed(HostInput::Owner { attempt, message })
    }

    pub(crate) fn engine(&mut self, attempt: Attempt, event: EngineInput) -> Vec<String> {
        self.feed(HostInput::Engine { attempt, event })
    }

    pub(crate) fn transfer(&mut self, attempt: Attempt, event: TransferInput) -> Vec<String> {
        self.feed(HostInput::Transfer { attempt, event })
    }

    pub(crate) fn digest(&mut self, n: u64, open: &[Attempt]) -> Vec<String> {
        self.feed(HostInput::Digest {
            gateway: GATEWAY,
            n,
            open: open.iter().map(|attempt| kept(*attempt, 0)).collect(),
        })
    }

    pub(crate) fn phase(&self, attempt: Attempt) -> String {
        self.host
            .stay(attempt)
            .map_or_else(|| "gone".to_owned(), |stay| format!("{:?}", stay.phase))
    }

    /// `free/leased/cached/quarantined`.
    pub(crate) fn blocks(&self) -> String {
        self.host.ledger().audit().unwrap();
        let now = self.host.occupancy();
        format!("{}/{}/{}/{}", now.free, now.leased, now.cached, now.quarantined)
    }
}

pub(crate) const FIRST_TOKEN: EngineInput = EngineInput::Sampled {
    count: 1,
    finish: None,
};

pub(crate) fn show(command: &HostCommand) -> String {
    match command {
        HostCommand::Tell { attempt, message } => {
            format!("tell {}: {}", tag(*attempt), show_message(message))
        }
        HostCommand::AnswerDigest { n, held, .. } => {
            format!(
                "digest {n}: held {}",
                held.iter()
                    .map(|attempt| tag(*attempt))
                    .collect::<Vec<_>>()
                    .join(" ")
            )
        }
        HostCommand::StartPrefill {
            attempt,
            blocks,
            computed,
            whole,
            until,
        } => {
            let goal = if *whole { "whole" } else { "first token" };
            format!(
                "prefill {} in {} from {computed}, {goal}{}",
                tag(*attempt),
                run(blocks),
                leave(*until)
            )
        }
        HostCommand::StartDecode {
            attempt,
            blocks,
            computed,
            until,
        } => {
            let leave = leave(*until);
            format!(
                "decode {} in {} from {computed}{leave}",
                tag(*attempt),
                run(blocks)
            )
        }
        HostCommand::Allow { attempt, until } => format!("allow {}{}", tag(*attempt), leave(*until)),
        HostCommand::Grow { attempt, blocks } => format!("grow {} by {}", tag(*attempt), run(blocks)),
        HostCommand::StopEngine { attempt } => format!("stop engine {}", tag(*attempt)),
        HostCommand::Offer { attempt, blocks } => format!("offer {} {}", tag(*attempt), run(blocks)),
        HostCommand::Withdraw { attempt } => format!("withdraw {}", tag(*attempt)),
        HostCommand::Read { attempt, from, into } => {
            format!("read {} from {from} into {}", tag(*attempt), run(into))
        }
        HostCommand::CancelRead { attempt } => format!("cancel read {}", tag(*attempt)),
    }
}

fn show_message(message: &ToOwner) -> String {
    match message {
        ToOwner::Reserved { cached_blocks } => format!("Reserved, {cached_blocks} cached"),
        ToOwner::Progress { positions } => format!("Progress {positions}"),
        ToOwner::Tokens { from, count } => format!("Tokens {count} from {from}"),
        ToOwner::Finished { finish, answered } => format!("Finished {finish:?} at {answered}"),
        ToOwner::Refused(why) => format!("Refused {why:?}"),
        ToOwner::Failed(why) => format!("Failed {why:?}"),
        ToOwner::Published | ToOwner::Pulled | ToOwner::Closed => format!("{message:?}"),
    }
}

/// Where there is an end of it.
fn leave(until: u32) -> String {
    match until {
        u32::MAX => String::new(),
        until => format!(", until {until}"),
    }
}

fn tag(attempt: Attempt) -> String {
    format!("{}#{}", attempt.room.seq, attempt.generation.0)
}

fn run(blocks: &[BlockId]) -> String {
    format!("{:?}", blocks.iter().map(|block| block.0).collect::<Vec<_>>())
}

#[track_caller]
pub(crate) fn check(got: &[String], expected: &[&str]) {
    assert_eq!(got, expected);
}

/// What the owner hears when a host says this.
pub(crate) fn heard(message: ToOwner) -> Report {
    match message {
        ToOwner::Reserved { cached_blocks } => Report::Reserved { cached_blocks },
        ToOwner::Refused(why) => Report::Refused(why),
        ToOwner::Progress { positions } => Report::Progress { positions },
        ToOwner::Tokens { from, count } => Report::Tokens { from, count },
        ToOwner::Published => Report::Published,
        ToOwner::Pulled => Report::Pulled,
        ToOwner::Finished { finish, answered } => Report::Finished {
            finish,
            total: answered,
        },
        ToOwner::Failed(error) => Report::Failed(error),
        ToOwner::Closed => Report::Closed,
    }
}
