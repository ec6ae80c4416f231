//! The number of each message. Part of the wire format: a number is never used again for something else.

use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal $text:literal,)*) => {
        /// Which message a frame carries.
        #[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
        #[repr(u16)]
        pub enum Kind {
            $($(#[$doc])* $name = $number,)*
        }

        impl Kind {
            /// Every kind, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The number in the header.
            #[must_use]
            pub fn number(self) -> u16 {
                self as u16
            }

            /// The kind with this number, if there is one.
            #[must_use]
            pub fn from_number(number: u16) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The name in snake case, for labels and messages.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

kinds! {
    /// A worker's first frame.
    Hello = 1 "hello",
    /// A gateway's answer: accepted.
    HelloAck = 2 "hello_ack",
    /// A gateway's answer: refused.
    HelloRefused = 3 "hello_refused",
    /// Gateway to worker: a digest.
    Heartbeat = 16 "heartbeat",
    /// Gateway to worker: grant blocks and a slot.
    Reserve = 17 "reserve",
    /// Gateway to worker: compute a prompt.
    Prefill = 18 "prefill",
    /// Gateway to worker: get the KV and decode.
    Pull = 19 "pull",
    /// Gateway to worker: the KV was fetched.
    Release = 20 "release",
    /// Gateway to worker: the attempt is over.
    Close = 21 "close",
    /// Gateway to worker: the gateway is leaving.
    Goodbye = 22 "goodbye",
    /// Gateway to worker: the answer may go on.
    Allow = 23 "allow",
    /// Gateway to worker: a room that is over is traced.
    KeepTrace = 24 "keep_trace",
    /// Gateway to worker: what an operator wants of the worker.
    Order = 25 "order",
    /// Worker to gateway: the answer to a digest.
    HeartbeatAck = 32 "heartbeat_ack",
    /// Worker to gateway: granted.
    Reserved = 33 "reserved",
    /// Worker to gateway: not granted.
    Refused = 34 "refused",
    /// Worker to gateway: so far.
    Progress = 35 "progress",
    /// Worker to gateway: tokens of many rooms.
    Tokens = 36 "tokens",
    /// Worker to gateway: the KV is on offer.
    Published = 37 "published",
    /// Worker to gateway: the KV has arrived.
    Pulled = 38 "pulled",
    /// Worker to gateway: the attempt failed.
    Failed = 39 "failed",
    /// Worker to gateway: nothing of the attempt is left.
    Closed = 40 "closed",
    /// Worker to gateway: the worker is leaving.
    Leaving = 41 "leaving",
    /// Worker to gateway: why the attempt is about to fail, in words.
    Reason = 42 "reason",
    /// Worker to gateway: what the hello does not say of the worker.
    About = 43 "about",
    /// Worker to gateway: the answer to an order.
    Ordered = 44 "ordered",
}

impl Kind {
    /// The first version that has it. In older ones there is no such frame.
    #[must_use]
    pub fn since(self) -> u16 {
        match self {
            Self::KeepTrace | Self::Reason | Self::About => 3,
            Self::Order | Self::Ordered => 4,
            _ => 1,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
