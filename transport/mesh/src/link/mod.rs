//! One link: its handle, its life, and how it ends. The same at both ends.

mod core;
mod event;
mod keeper;
mod lease;
mod reader;
mod run;
mod stats;
mod writer;

pub use self::core::{Link, SendError};
pub use event::{DownReason, LinkEvent, LinkId, Side};
pub use stats::LinkStats;

pub(crate) use self::core::{Core, NewLink};
pub(crate) use event::{CLOSED, REFUSED};
pub(crate) use reader::{ReadError, read_frame};
pub(crate) use run::{Running, run};
