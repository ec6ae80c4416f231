//! One UCX context, worker and listener, as a value of one thread: safe calls in, a queue of happenings out.
//!
//! Callbacks only append to the queue. Every operation that is started yields exactly one [`Happening::Done`],
//! whether it ended at once, later, or in error, unless the port is dropped before. The port keeps what UCX may still
//! touch (headers, payloads) until then; the region outlives the port, as its owner holds it.

#![allow(unsafe_code)]

mod callbacks;
mod open;
mod ops;
mod queue;

use std::{
    collections::HashMap,
    ffi::{CStr, c_char, c_void},
    marker::PhantomData,
    net::SocketAddr,
    os::fd::{BorrowedFd, RawFd},
    ptr,
};

pub use open::OpenError;
pub(crate) use ops::Body;
pub(crate) use queue::{ConnRequest, Happening, Message, Payload};

use crate::{
    Ucx,
    sys::{self, Handle, SockAddr, Status, consts},
};
use ops::Op;
use queue::Queue;

/// An endpoint as UCX names it. Valid until it is closed.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub(crate) struct EpHandle(usize);

/// Whether the thread may sleep.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(crate) enum Armed {
    /// The event descriptor will tell.
    Sleep,
    /// There is something to do.
    Busy,
}

/// Everything UCX, behind safe calls. `T` tags operations.
pub(crate) struct Port<T> {
    ucx: Ucx,
    context: Handle,
    worker: Handle,
    listener: Handle,
    efd: RawFd,
    address: SocketAddr,
    /// Boxed: callbacks hold its address.
    queue: Box<Queue>,
    /// What the message handlers are registered with; boxed as the queue.
    inbound: Box<[callbacks::Inbound]>,
    ops: HashMap<u64, Box<Op<T>>>,
    last_op: u64,
    /// UCX is used by one thread only.
    _one_thread: PhantomData<*mut c_void>,
}

impl<T> Port<T> {
    /// Where the listener listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets UCX work once. True if it did anything.
    pub(crate) fn progress(&mut self) -> bool {
        // SAFETY: the worker is alive and this is its thread.
        let worked = unsafe { (self.ucx.functions().ucp_worker_progress)(self.worker) };
        worked > 0 || !self.queue.is_empty()
    }

    /// Asks to be woken by [`Self::event_fd`].
    pub(crate) fn arm(&mut self) -> Armed {
        // SAFETY: as in `progress`.
        match unsafe { (self.ucx.functions().ucp_worker_arm)(self.worker) } {
            Status::OK => Armed::Sleep,
            _ => Armed::Busy,
        }
    }

    /// Readable when the worker has something to do after [`Self::arm`] said [`Armed::Sleep`].
    pub(crate) fn event_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the worker owns the descriptor and lives as long as `self`.
        unsafe { BorrowedFd::borrow_raw(self.efd) }
    }

    /// Starts a connection. Its failure comes as [`Happening::EpFailed`].
    pub(crate) fn dial(&mut self, to: SocketAddr) -> Result<EpHandle, Status> {
        let raw = open::encode_address(to);
        let mut params = self.ep_params();
        params.field_mask |= consts::EP_SOCK_ADDR | consts::EP_FLAGS;
        params.flags = consts::EP_FLAG_CLIENT_SERVER | consts::EP_FLAG_NO_LOOPBACK;
        params.sockaddr = SockAddr {
            addr: raw.bytes.as_ptr().cast(),
            len: raw.len,
        };
        self.create_ep(&params)
    }

    /// Accepts a connection that was asked for.
    pub(crate) fn accept(&mut self, ConnRequest(request): ConnRequest) -> Result<EpHandle, Status> {
        let mut params = self.ep_params();
        params.field_mask |= consts::EP_CONN_REQUEST;
        params.conn_request = request;
        self.create_ep(&params)
    }

    /// Refuses a connection that was asked for.
    pub(crate) fn reject(&mut self, ConnRequest(request): ConnRequest) {
        // SAFETY: the request is unanswered, as taking it from the queue consumes it.
        let _ = unsafe { (self.ucx.functions().ucp_listener_reject)(self.listener, request) };
    }

    fn ep_params(&self) -> sys::EpParams {
        let arg = ptr::from_ref::<Queue>(&self.queue).cast_mut().cast();
        sys::EpParams {
            field_mask: consts::EP_ERR_MODE | consts::EP_ERR_HANDLER,
            address: ptr::null(),
            err_mode: consts::ERR_MODE_PEER,
            err_handler: sys::ErrHandler {
                cb: Some(callbacks::ep_failed),
                arg,
            },
            user_data: ptr::null_mut(),
            flags: 0,
            sockaddr: SockAddr::NONE,
            conn_request: ptr::null_mut(),
            name: ptr::null(),
            local_sockaddr: SockAddr::NONE,
        }
    }

    fn create_ep(&mut self, params: &sys::EpParams) -> Result<EpHandle, Status> {
        let mut ep = ptr::null_mut();
        // SAFETY: parameters and out-pointer are valid for the call; the queue outlives the worker.
        unsafe { (self.ucx.functions().ucp_ep_create)(self.worker, params, &raw mut ep) }.result()?;
        Ok(EpHandle(ep as usize))
    }

    /// Names of the transports an endpoint uses, as UCX tells (1.13: maybe none).
    pub(crate) fn transports(&self, ep: EpHandle) -> Vec<String> {
        let mut entries = [sys::TransportEntry {
            transport_name: ptr::null(),
            device_name: ptr::null(),
        }; 16];
        let transports = sys::Transports {
            entries: entries.as_mut_ptr(),
            num_entries: 16,
            entry_size: size_of::<sys::TransportEntry>(),
        };
        let mut attr = sys::EpAttr {
            field_mask: consts::EP_ATTR_TRANSPORTS,
            name: [0; 32],
            local_sockaddr: [0; 16],
            remote_sockaddr: [0; 16],
            transports,
            user_data: ptr::null_mut(),
        };
        // SAFETY: the endpoint is open; the array has the size told.
        if unsafe { (self.ucx.functions().ucp_ep_query)(ep.0 as Handle, &raw mut attr) }.is_error() {
            return Vec::new();
        }
        let count = (attr.transports.num_entries as usize).min(entries.len());
        entries[..count]
            .iter()
            .filter_map(|entry| name(entry.transport_name))
            .collect()
    }

    /// The next thing that happened.
    pub(crate) fn next(&mut self) -> Option<Happening<T>> {
        let event = self.queue.pop()?;
        Some(match event {
            queue::Raw::Connect(request) => Happening::Connect(request),
            queue::Raw::EpFailed(ep, status) => Happening::EpFailed {
                ep: EpHandle(ep),
                status,
            },
            queue::Raw::Message(message) => Happening::Message(message),
            queue::Raw::Done { op, status, len } => match self.ops.remove(&op) {
                Some(op) => Happening::Done {
                    tag: op.tag,
                    status,
                    len,
                },
                None => return self.next(),
            },
        })
    }
}

/// A C string of UCX's, copied.
fn name(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, and a C string by the interface.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

impl<T> Drop for Port<T> {
    fn drop(&mut self) {
        while let Some(event) = self.queue.pop() {
            match event {
                queue::Raw::Connect(request) => self.reject(request),
                queue::Raw::Message(message) => self.discard(message.payload),
                queue::Raw::EpFailed(..) | queue::Raw::Done { .. } => {}
            }
        }
        let functions = self.ucx.functions();
        // SAFETY: each is alive, and goes in the reverse order of creation. Callbacks that run in here find the
        // queue and the operations, which are dropped after this.
        unsafe {
            if !self.listener.is_null() {
                (functions.ucp_listener_destroy)(self.listener);
            }
            if !self.worker.is_null() {
                (functions.ucp_worker_destroy)(self.worker);
            }
            (functions.ucp_cleanup)(self.context);
        }
    }
}
