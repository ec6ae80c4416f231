//! Where peers connect.

use std::{net::SocketAddr, os::fd::BorrowedFd, ptr, rc::Rc};

use super::{
    Armed, ConnRequest, Context, OpenError,
    address::{self, RawAddress},
    callbacks,
    queue::{Queue, Raw},
    worker::Worker,
};
use crate::sys::{self, ConnHandler, Handle, Status, consts};

/// A UCX listener. Its worker carries no connection: nothing that a peer does can hold it up.
pub(crate) struct Listener {
    raw: Handle,
    address: SocketAddr,
    worker: Worker,
}

impl Listener {
    /// Listens on `bind` (port 0: the system's choice).
    pub(crate) fn open(context: &Rc<Context>, bind: SocketAddr) -> Result<Self, OpenError> {
        let mut listener = Self {
            raw: ptr::null_mut(),
            address: bind,
            worker: Worker::new(context)?,
        };
        listener.listen(bind).map_err(|s| context.fail("listener", s))?;
        Ok(listener)
    }

    fn listen(&mut self, bind: SocketAddr) -> Result<(), Status> {
        let to = RawAddress::new(bind);
        let params = sys::ListenerParams {
            field_mask: consts::LISTENER_SOCK_ADDR | consts::LISTENER_CONN_HANDLER,
            sockaddr: to.as_c(),
            accept_handler: ConnHandler {
                cb: None,
                arg: ptr::null_mut(),
            },
            conn_handler: ConnHandler {
                cb: Some(callbacks::connect),
                arg: ptr::from_ref::<Queue>(&self.worker.queue).cast_mut().cast(),
            },
        };
        let mut attr = sys::ListenerAttr {
            field_mask: consts::LISTENER_ATTR_SOCKADDR,
            sockaddr: [0; 16],
        };
        let functions = self.worker.functions();
        // SAFETY: valid parameters and out-pointers; the queue outlives the listener.
        unsafe {
            (functions.ucp_listener_create)(self.worker.raw, &raw const params, &raw mut self.raw)
                .result()?;
            (functions.ucp_listener_query)(self.raw, &raw mut attr).result()?;
        }
        self.address.set_port(address::port(&attr.sockaddr));
        Ok(())
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// As [`super::Connection::progress`].
    pub(crate) fn progress(&mut self) -> bool {
        self.worker.progress()
    }

    /// As [`super::Connection::arm`].
    pub(crate) fn arm(&mut self) -> Armed {
        self.worker.arm()
    }

    /// As [`super::Connection::event_fd`].
    pub(crate) fn event_fd(&self) -> BorrowedFd<'_> {
        self.worker.event_fd()
    }

    /// The next peer that wants to connect.
    pub(crate) fn next(&mut self) -> Option<ConnRequest> {
        match self.worker.next()? {
            Raw::Connect(request) => Some(request),
            // Nothing else is started on this worker.
            _ => None,
        }
    }

    /// Refuses a connection that was asked for.
    pub(crate) fn reject(&mut self, ConnRequest(request): ConnRequest) {
        // SAFETY: the request is unanswered, as taking it from the queue consumes it.
        let _ = unsafe { (self.worker.functions().ucp_listener_reject)(self.raw, request) };
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.raw.is_null() {
            return;
        }
        while let Some(request) = self.next() {
            self.reject(request);
        }
        // SAFETY: alive until here, and before its worker.
        unsafe { (self.worker.functions().ucp_listener_destroy)(self.raw) }
    }
}
