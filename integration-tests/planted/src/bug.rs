//! The bugs, and their names.

use std::fmt;
use std::str::FromStr;

/// A closed list with a name each, from which all else follows.
macro_rules! bugs {
    ($($(#[doc = $doc:literal])* $bug:ident = $name:literal,)*) => {
        /// A bug that can be planted. Each says what it is, where the like was seen, and what has to find it.
        #[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
        pub enum Bug {
            $($(#[doc = $doc])* $bug,)*
        }

        impl Bug {
            /// Every bug.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$bug),*];

            /// Its name, in lower case with hyphens.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$bug => $name,)*
                }
            }

            /// All that is said of it.
            const fn doc(self) -> &'static str {
                match self {
                    $(Self::$bug => concat!($($doc),*),)*
                }
            }
        }
    };
}

bugs! {
    /// Closing a lease returns its blocks though the engine, a read or a send may still touch them. What touches them is
    /// told to stop, as ever. Seen: an abort frees the destination of a remote write that is under way, and the next
    /// owner of the block gets another user's KV. To be found by INV-01: the canary, and writes to pinned blocks.
    FreeOnAbort = "free-on-abort",
    /// A worker does not answer about an attempt that it does not know, and the gateway draws no conclusion from a
    /// digest's answer that does not list it: two of three lines are gone, only the fence is left. Seen: the status of a
    /// room that is missing from a table is skipped, and its poll says "waiting" for ever. To be found by fences that
    /// nothing was the cause of (INV-10), by leases at the owner that outlast their bound (INV-08).
    UnknownRoomIgnored = "unknown-room-ignored",
    /// A lease whose proof is overdue is returned without it. Seen: KV of a transfer is freed after a guessed timeout.
    /// To be found by INV-01, where a transfer or a step lasts longer than `HostLimits::proof_retry`.
    TimeoutFrees = "timeout-frees",
    /// What a worker says of an older attempt is taken for the current one. Seen: late status messages of a retried
    /// request. To be found by INV-07, by legs that are never proven returned, by fences without a cause.
    GenerationNotChecked = "generation-not-checked",
    /// Of an attempt with two legs, one is never told to close. Seen: an abort that reaches prefill only. To be found by
    /// INV-08: the stay lasts, listed in every digest, until its own deadline.
    CloseForgotten = "close-forgotten",
    /// A request's deadline is looked at by its actor when a message comes, and armed nowhere else. Seen: a timeout that
    /// is checked in the poll loop which hangs. To be found by INV-04 wherever nothing comes.
    DeadlineInGuardedLoop = "deadline-in-guarded-loop",
    /// The next attempt has the generation of the one that failed. Seen: a retry under the same room number. A worker
    /// that was part of it refuses it as stale, so no wrong byte follows; to be found by INV-07 and by requests that
    /// fail though everything is healed.
    RetryReusesRoom = "retry-reuses-room",
    /// All answers of a request with `n` above one are one room. Seen: parallel sampling with one bootstrap room. To be
    /// found by INV-03 and INV-04: mail goes to one sibling, the others wait for their deadline.
    SiblingsShareRoom = "siblings-share-room",
    /// A worker answers a digest and closes nothing. To be found by INV-08 where every Close of a room is lost.
    DigestIgnored = "digest-ignored",
    /// A worker tells gateways apart by name, not by incarnation. Seen: peers keyed by host and port. What a restarted
    /// gateway opens has the names of what its predecessor had here; tombstones refuse it, so to be found by attempts
    /// that fail as stale though everything is healed (INV-10), or by the names themselves.
    EpochIgnored = "epoch-ignored",
    /// A withdrawn offer stays readable. Seen: reads by address, which nobody answers for. To be found by INV-01: a read
    /// served out of blocks that are no longer the offer's.
    ReadWithoutLease = "read-without-lease",
    /// Nothing is remembered of attempts that have gone. To be found by INV-07 where orders are repeated or overtake each
    /// other: a stay is opened for an attempt that was here before.
    TombstoneMissing = "tombstone-missing",
    /// Waiting for room is a fault: the time in the queue counts against the grant, and a worker that is full is blamed.
    /// Seen: bootstrap timeouts that run while a request is queued. To be found by outcomes: a request that fails by
    /// `Evicted`, `NoBlocks` or `NoSlot`, or by a grant that had no time.
    QueueTimeIsFault = "queue-time-is-fault",
    /// A finish that comes while an aborted room drains makes it a success, and the client hears of it. Seen: finished
    /// after aborted in the same step. To be found by INV-03 and INV-05: two ends of one room.
    SuccessOverwritesAbort = "success-overwrites-abort",
    /// A cancelled read is forgotten at once, and its blocks with it, while bytes may still land. Seen: the future that
    /// owns the buffers is dropped. To be found by INV-01.
    CancelDropsRead = "cancel-drops-read",
    /// Random numbers come from a stream that each engine draws from, not from (seed, position). Seen everywhere. To be
    /// found by INV-06: the exact tokens, of any answer that is not greedy.
    SamplingFromStream = "sampling-from-stream",
    /// A repeated Pull starts a second read. To be found by INV-06 where frames are repeated: what was sampled counts
    /// twice, so that the answer has a gap.
    DuplicatePullReads = "duplicate-pull-reads",
    /// Closing a lease that is closed already gives its blocks back a second time. Seen: reference counts of shared
    /// blocks below those of their users. To be found by INV-01 and INV-02 where blocks are shared, by INV-08 otherwise.
    DoubleRelease = "double-release",
    /// A retry computes the prompt alone and sends the client what it has already. Seen: recompute without the output so
    /// far. To be found by INV-06: repeated tokens.
    RetryForgetsDelivered = "retry-forgets-delivered",
    /// Blocks have their name in the prefix cache from their grant on, before anything is in them. Seen: cached blocks
    /// registered at scheduling. To be found by INV-01 where requests share prefixes.
    CachedBeforeComputed = "cached-before-computed",
    /// The credit of an attempt whose pull failed is not given back. Seen: a slot leaked in an error path. To be found
    /// by INV-11, and by throughput that does not return.
    CreditLeakedByPull = "credit-leaked-by-pull",
    /// The pin of a send counts twice and is taken off once. Seen: gauges that read 1 for ever. To be found by INV-08:
    /// quarantine that never ends.
    PinCountedTwice = "pin-counted-twice",
    /// Each retry has the request's whole time anew. To be found by INV-04.
    DeadlineRestarts = "deadline-restarts",
    /// An abort is noted, and the engine goes on to the end of the sequence. Seen: prefill of an aborted request goes
    /// on. To be found by INV-08: leases outlast their bound.
    AbortKeepsComputing = "abort-keeps-computing",
    /// What arrives is not compared with its checksum. To be found by INV-01 where a send completes and delivers nothing
    /// or another's bytes.
    ChecksumIgnored = "checksum-ignored",
    /// A client that leaves is not noticed. To be found by INV-08: its rooms go on to their end.
    DisconnectIgnored = "disconnect-ignored",
    /// The source is released when decode is told to pull, not when it has. Seen: the sender frees when it has sent. To
    /// be found by pulls that fail though everything is healed (INV-10).
    ReleasedBeforePulled = "released-before-pulled",
    /// The end of a gateway's link ends no lease. To be found by INV-08 where a gateway dies.
    GatewayLossIgnored = "gateway-loss-ignored",
    /// What was delivered before a migration counts as prompt after it. Seen: penalties and lengths of preempted
    /// sequences. To be found by INV-06: the answer ends elsewhere.
    DeliveredBecomesPrompt = "delivered-becomes-prompt",
}

impl Bug {
    /// What it is, in a sentence.
    #[must_use]
    pub fn what(self) -> &'static str {
        let doc = self.doc();
        doc.split_once(". ").map_or(doc, |(first, _)| first).trim()
    }
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No bug has this name.
#[derive(Clone, Eq, PartialEq, Debug)]
pub struct UnknownBug(pub String);

impl fmt::Display for UnknownBug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Bug::ALL.into_iter().map(Bug::name).collect();
        write!(f, "no bug is called {:?}; there are {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownBug {}

impl FromStr for Bug {
    type Err = UnknownBug;

    fn from_str(name: &str) -> Result<Self, UnknownBug> {
        let found = Self::ALL.into_iter().find(|bug| bug.name() == name);
        found.ok_or_else(|| UnknownBug(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Bug, UnknownBug};

    #[test]
    fn every_bug_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = Bug::ALL.into_iter().map(Bug::name).collect();
        assert_eq!(names.len(), Bug::ALL.len());
        for bug in Bug::ALL {
            assert_eq!(bug.to_string().parse(), Ok(bug));
            let lower = |letter: char| letter.is_ascii_lowercase() || letter == '-';
            assert!(bug.name().chars().all(lower), "{bug}");
            let what = bug.what();
            assert!(
                what.len() > 20 && !what.contains("Seen:") && !what.contains("found by"),
                "{what}"
            );
        }
    }

    #[test]
    fn a_name_of_no_bug_is_told_the_names() {
        let unknown = "free-on-Abort".parse::<Bug>();
        assert_eq!(unknown, Err(UnknownBug("free-on-Abort".to_owned())));
        let says = unknown.unwrap_err().to_string();
        assert!(
            says.contains("free-on-Abort") && says.contains("timeout-frees"),
            "{says}"
        );
    }
}
