//! The part of UCX's C interface this crate uses, by hand: types, and functions found in a library at run time.
//!
//! Structs only grow at their end in UCX, and field masks say which fields are valid, so one definition serves every
//! version from 1.13 on. A test compares sizes and offsets with the C headers.

#![allow(unsafe_code)]

mod functions;
#[cfg(test)]
mod probe;
mod structs;

pub(crate) use functions::Functions;
pub(crate) use structs::{
    AmHandlerParam, AmRecvParam, ConnHandler, EpAttr, EpParams, ErrHandler, ListenerAttr, ListenerParams,
    Params, RequestParam, SockAddr, TransportEntry, Transports, WorkerParams, consts,
};

use std::ffi::c_void;

/// Any UCX handle.
pub(crate) type Handle = *mut c_void;

/// `ucs_status_t`: one signed byte; a newtype, as values unknown to this crate may come.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
#[repr(transparent)]
pub(crate) struct Status(pub(crate) i8);

impl Status {
    pub(crate) const OK: Self = Self(0);
    pub(crate) const IN_PROGRESS: Self = Self(1);

    pub(crate) fn is_error(self) -> bool {
        self.0 < 0
    }

    pub(crate) fn result(self) -> Result<(), Self> {
        if self.is_error() { Err(self) } else { Ok(()) }
    }
}

/// `ucs_status_ptr_t` taken apart.
pub(crate) enum StatusPtr {
    /// Ended at once; no callback will come.
    Ended(Status),
    /// Under way; the callback will come.
    Pending,
}

impl StatusPtr {
    pub(crate) fn of(raw: Handle) -> Self {
        // The top 100 addresses are negative status codes.
        match raw as isize {
            0 => Self::Ended(Status::OK),
            code @ -100..=-1 => Self::Ended(Status(i8::try_from(code).unwrap_or(-100))),
            _ => Self::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: isize, want: Option<i8>) {
        let got = match StatusPtr::of(raw as Handle) {
            StatusPtr::Ended(status) => Some(status.0),
            StatusPtr::Pending => None,
        };
        assert_eq!(got, want, "{raw}");
    }

    #[test]
    fn status_pointers_are_told_apart() {
        check(0, Some(0));
        check(-1, Some(-1));
        check(-100, Some(-100));
        check(-101, None);
        check(0x7f00_1234_5678, None);
    }
}
