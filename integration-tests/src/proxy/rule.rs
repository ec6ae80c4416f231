//! What becomes of what goes one way.

use std::time::Duration;

use rand::Rng;

/// For packets. The default lets all of them pass.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct UdpRule {
    /// Of a hundred packets, how many are lost.
    pub loss_percent: u8,
    /// Of a hundred packets that are not lost, how many come twice.
    pub duplicate_percent: u8,
    /// How long each takes.
    pub delay: Duration,
    /// How much longer it may take, at random: what is more than the time between two packets reorders them.
    pub jitter: Duration,
    /// Packets wait until a rule comes that does not hold them. What is on its way already (see `delay`) goes on.
    pub hold: bool,
}

impl UdpRule {
    /// Everything passes.
    pub const PASS: Self = Self {
        loss_percent: 0,
        duplicate_percent: 0,
        delay: Duration::ZERO,
        jitter: Duration::ZERO,
        hold: false,
    };
    /// Everything is lost.
    pub const CUT: Self = Self {
        loss_percent: 100,
        ..Self::PASS
    };
    /// Everything waits.
    pub const HOLD: Self = Self {
        hold: true,
        ..Self::PASS
    };

    /// One packet's copies, as the time that each takes: none for a lost packet, two for one that comes twice.
    pub fn fates(&self, random: &mut impl Rng) -> Vec<Duration> {
        let mut hits = |percent: u8| percent > 0 && random.random_range(0..100) < percent;
        if hits(self.loss_percent) {
            return Vec::new();
        }
        let copies = 1 + usize::from(hits(self.duplicate_percent));
        let mut took = || match self.jitter.is_zero() {
            true => self.delay,
            false => self.delay + random.random_range(Duration::ZERO..=self.jitter),
        };
        (0..copies).map(|_| took()).collect()
    }
}

/// For a stream of bytes, which TCP keeps whole: it can be late, slow or stopped. The default lets it pass.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct TcpRule {
    /// Nothing is passed on, and little is read, so that in the end the sender is stopped too.
    pub hold: bool,
    /// How long each piece (16 KiB at most) takes, one after the other.
    pub delay: Duration,
    /// Bytes a second; 0: as many as come.
    pub bytes_per_s: u32,
}

impl TcpRule {
    /// Everything passes.
    pub const PASS: Self = Self {
        hold: false,
        delay: Duration::ZERO,
        bytes_per_s: 0,
    };
    /// Everything waits.
    pub const HOLD: Self = Self {
        hold: true,
        ..Self::PASS
    };

    /// How long a piece of this size takes.
    #[must_use]
    pub fn takes(&self, bytes: usize) -> Duration {
        let slow = match self.bytes_per_s {
            0 => Duration::ZERO,
            rate => Duration::from_secs_f64(bytes as f64 / f64::from(rate)),
        };
        self.delay + slow
    }
}
