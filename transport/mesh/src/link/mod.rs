//! One link: its handle, its life, and how it ends. The same at both ends.

mod close;
mod core;
mod event;
mod handle;
mod keeper;
mod lease;
mod reader;
mod run;
mod stats;
mod unread;
mod words;
mod writer;

pub use event::{DownReason, LinkEvent, LinkId, Side};
pub use handle::{Link, SendError};
pub use stats::LinkStats;
pub use unread::Unread;

pub(crate) use self::core::{Core, NewLink};
pub(crate) use close::{CloseCode, lost, printable};
pub(crate) use reader::read_frame;
pub(crate) use run::{Running, run};
pub(crate) use words::LastWords;
