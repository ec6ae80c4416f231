//! One UCX worker and the queue its callbacks fill.

use std::{marker::PhantomData, os::fd::BorrowedFd, os::fd::RawFd, ptr, rc::Rc};

use super::{
    Context, OpenError,
    queue::{Queue, Raw},
};
use crate::sys::{self, Functions, Handle, Status, consts};

/// Whether the thread may sleep.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(crate) enum Armed {
    /// The event descriptor will tell.
    Sleep,
    /// There is something to do.
    Busy,
}

/// A UCX worker. Dropping it ends everything on it before the queue goes.
pub(super) struct Worker {
    pub(super) context: Rc<Context>,
    pub(super) raw: Handle,
    efd: RawFd,
    /// Boxed: callbacks hold its address.
    pub(super) queue: Box<Queue>,
    /// UCX is used by one thread only.
    _one_thread: PhantomData<*mut ()>,
}

impl Worker {
    pub(super) fn new(context: &Rc<Context>) -> Result<Self, OpenError> {
        let params = sys::WorkerParams {
            field_mask: consts::WORKER_THREAD_MODE | consts::WORKER_FLAGS,
            thread_mode: consts::THREAD_MODE_SINGLE,
            cpu_mask: [0; 16],
            events: 0,
            user_data: ptr::null_mut(),
            event_fd: -1,
            // A worker destroyed because its requests do not end has some left.
            flags: consts::WORKER_IGNORE_REQUEST_LEAK,
            name: ptr::null(),
            am_alignment: 0,
            client_id: 0,
        };
        let mut raw = ptr::null_mut();
        // SAFETY: the context is alive; valid parameters and out-pointer.
        unsafe { (context.ucx.functions().ucp_worker_create)(context.raw, &raw const params, &raw mut raw) }
            .result()
            .map_err(|s| context.fail("worker creation", s))?;
        let mut worker = Self {
            context: context.clone(),
            raw,
            efd: -1,
            queue: Box::new(Queue::new(context.ucx.clone())),
            _one_thread: PhantomData,
        };
        // SAFETY: the worker is alive; valid out-pointer.
        unsafe { (context.ucx.functions().ucp_worker_get_efd)(raw, &raw mut worker.efd) }
            .result()
            .map_err(|s| context.fail("event descriptor", s))?;
        Ok(worker)
    }

    pub(super) fn functions(&self) -> &Functions {
        self.context.ucx.functions()
    }

    /// Lets UCX work once. True if it did anything.
    pub(super) fn progress(&mut self) -> bool {
        // SAFETY: the worker is alive and this is its thread.
        let worked = unsafe { (self.functions().ucp_worker_progress)(self.raw) };
        worked > 0 || !self.queue.is_empty()
    }

    pub(super) fn next(&self) -> Option<Raw> {
        self.queue.pop()
    }

    /// Asks to be woken by [`Self::event_fd`].
    pub(super) fn arm(&mut self) -> Armed {
        // SAFETY: as in `progress`.
        match unsafe { (self.functions().ucp_worker_arm)(self.raw) } {
            Status::OK => Armed::Sleep,
            _ => Armed::Busy,
        }
    }

    /// Readable when the worker has something to do after [`Self::arm`] said [`Armed::Sleep`].
    pub(super) fn event_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the worker owns the descriptor and lives as long as `self`.
        unsafe { BorrowedFd::borrow_raw(self.efd) }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // SAFETY: alive until here. Callbacks that run in here find the queue, which is dropped after this; what else
        // they reach, their owner keeps behind its worker.
        unsafe { (self.functions().ucp_worker_destroy)(self.raw) }
    }
}
