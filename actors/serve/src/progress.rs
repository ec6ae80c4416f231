//! A progress bar on standard error; plain lines now and then where that is no terminal.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar that shows itself with the first update.
pub(crate) struct Bar {
    title: &'static str,
    bar: Option<ProgressBar>,
    /// Tenths already said, where there is no terminal.
    said: Option<u64>,
}

impl Bar {
    pub(crate) fn new(title: &'static str) -> Self {
        Self {
            title,
            bar: None,
            said: None,
        }
    }

    /// So many of so many bytes have arrived.
    pub(crate) fn update(&mut self, done_bytes: u64, total_bytes: u64) {
        if !std::io::stderr().is_terminal() {
            return self.say(done_bytes, total_bytes);
        }
        let title = self.title;
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::new(total_bytes);
            if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {eta}") {
                bar.set_style(style);
            }
            bar.with_message(title)
        });
        bar.set_length(total_bytes);
        bar.set_position(done_bytes);
    }

    fn say(&mut self, done_bytes: u64, total_bytes: u64) {
        let tenths = done_bytes
            .saturating_mul(10)
            .checked_div(total_bytes)
            .unwrap_or(0);
        if self.said.is_none_or(|said| tenths > said) {
            self.said = Some(tenths);
            eprintln!(
                "{}: {} of {} MB",
                self.title,
                done_bytes / 1_000_000,
                total_bytes / 1_000_000
            );
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
