//! One connection to a peer, on a UCX worker of its own.

use std::{
    collections::HashMap,
    ffi::{CStr, c_char},
    net::SocketAddr,
    os::fd::BorrowedFd,
    ptr,
    rc::Rc,
};

use super::{
    Armed, ConnRequest, Context, Happening, OpenError,
    address::RawAddress,
    callbacks::{self, Inbound},
    ops::Op,
    queue::{Queue, Raw},
    worker::Worker,
};
use crate::{
    message,
    sys::{self, Handle, SockAddr, Status, consts},
};

const IDS: [u32; 4] = [
    message::ID_READ,
    message::ID_DATA,
    message::ID_REFUSE,
    message::ID_CANCEL,
];

/// A connection. `T` tags operations. Dropping it closes it by force: nothing lands and nothing is sent after that.
pub(crate) struct Connection<T> {
    /// Dropped first, as callbacks reach what follows.
    pub(super) worker: Worker,
    /// What the message handlers are registered with; boxed as the queue.
    inbound: Box<[Inbound]>,
    pub(super) ep: Handle,
    pub(super) ops: HashMap<u64, Box<Op<T>>>,
    pub(super) last_op: u64,
}

impl<T> Connection<T> {
    /// Starts a connection. Its failure comes as [`Happening::Failed`].
    pub(crate) fn dial(context: &Rc<Context>, to: SocketAddr) -> Result<Self, OpenError> {
        let mut connection = Self::unconnected(context)?;
        let to = RawAddress::new(to);
        let mut params = connection.ep_params();
        params.field_mask |= consts::EP_SOCK_ADDR | consts::EP_FLAGS;
        params.flags = consts::EP_FLAG_CLIENT_SERVER | consts::EP_FLAG_NO_LOOPBACK;
        params.sockaddr = to.as_c();
        connection.create_ep(&params)?;
        Ok(connection)
    }

    /// A connection to accept a peer's request with.
    pub(crate) fn unconnected(context: &Rc<Context>) -> Result<Self, OpenError> {
        let worker = Worker::new(context)?;
        let queue = ptr::from_ref::<Queue>(&worker.queue);
        let connection = Self {
            worker,
            inbound: IDS.map(|id| Inbound { queue, id }).into(),
            ep: ptr::null_mut(),
            ops: HashMap::new(),
            last_op: 0,
        };
        connection
            .register()
            .map_err(|s| context.fail("message handler", s))?;
        Ok(connection)
    }

    fn register(&self) -> Result<(), Status> {
        for inbound in &self.inbound {
            let params = sys::AmHandlerParam {
                field_mask: consts::AM_HANDLER_ALL,
                id: inbound.id,
                flags: consts::AM_WHOLE_MSG | consts::AM_PERSISTENT_DATA,
                cb: Some(callbacks::message),
                arg: ptr::from_ref(inbound).cast_mut().cast(),
            };
            let set = self.worker.functions().ucp_worker_set_am_recv_handler;
            // SAFETY: valid parameters; the argument and its queue outlive the worker.
            unsafe { set(self.worker.raw, &raw const params) }.result()?;
        }
        Ok(())
    }

    /// Accepts a connection that was asked for.
    pub(crate) fn accept(&mut self, ConnRequest(request): ConnRequest) -> Result<(), OpenError> {
        let mut params = self.ep_params();
        params.field_mask |= consts::EP_CONN_REQUEST;
        params.conn_request = request;
        self.create_ep(&params)
    }

    fn ep_params(&self) -> sys::EpParams {
        let arg = ptr::from_ref::<Queue>(&self.worker.queue).cast_mut().cast();
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

    fn create_ep(&mut self, params: &sys::EpParams) -> Result<(), OpenError> {
        let create = self.worker.functions().ucp_ep_create;
        // SAFETY: parameters and out-pointer are valid for the call; the queue outlives the worker.
        unsafe { create(self.worker.raw, params, &raw mut self.ep) }
            .result()
            .map_err(|s| self.worker.context.fail("connection", s))
    }

    /// Names of the transports in use, as UCX tells (1.13: maybe none).
    pub(crate) fn transports(&self) -> Vec<String> {
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
        let status = unsafe { (self.worker.functions().ucp_ep_query)(self.ep, &raw mut attr) };
        if status.is_error() {
            return Vec::new();
        }
        let count = (attr.transports.num_entries as usize).min(entries.len());
        entries[..count]
            .iter()
            .filter_map(|entry| name(entry.transport_name))
            .collect()
    }

    /// Lets UCX work once. True if it did anything.
    pub(crate) fn progress(&mut self) -> bool {
        self.worker.progress()
    }

    /// Asks to be woken by [`Self::event_fd`].
    pub(crate) fn arm(&mut self) -> Armed {
        self.worker.arm()
    }

    /// Readable when there is something to do after [`Self::arm`] said [`Armed::Sleep`].
    pub(crate) fn event_fd(&self) -> BorrowedFd<'_> {
        self.worker.event_fd()
    }

    /// The next thing that happened.
    pub(crate) fn next(&mut self) -> Option<Happening<T>> {
        loop {
            match self.worker.next()? {
                Raw::Failed(status) => return Some(Happening::Failed(status)),
                Raw::Message(message) => return Some(Happening::Message(message)),
                Raw::Done { op, status, len } => {
                    if let Some(op) = self.ops.remove(&op) {
                        let tag = op.tag;
                        return Some(Happening::Done { tag, status, len });
                    }
                }
                // No listener has this worker.
                Raw::Connect(_) => {}
            }
        }
    }
}

impl<T> Drop for Connection<T> {
    fn drop(&mut self) {
        if !self.ep.is_null() {
            self.close();
        }
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
