//! Where fault switches would be: a build without them does nothing.

use wire::EncodedFrame;

use crate::config::Config;

pub(crate) struct Switch;

impl Switch {
    pub(crate) fn new(_: &Config) -> Self {
        Self
    }

    pub(crate) fn cuts_in(&self) -> bool {
        false
    }

    pub(crate) fn held(&self) -> Held {
        Held
    }
}

pub(crate) struct Held;

impl Held {
    /// Never ready: nothing is held back.
    pub(crate) async fn due(&mut self) -> EncodedFrame {
        std::future::pending().await
    }

    pub(crate) fn overdue(&mut self) -> Option<EncodedFrame> {
        None
    }

    pub(crate) fn judge(&mut self, _: &Switch, frame: EncodedFrame) -> Option<EncodedFrame> {
        Some(frame)
    }
}
