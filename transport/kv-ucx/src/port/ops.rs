//! Operations of a connection: send, receive, release, close.

use std::{
    ffi::c_void,
    ptr, slice,
    time::{Duration, Instant},
};

use super::{
    Connection, Happening, callbacks,
    queue::{Payload, Queue, Raw},
};
use crate::{
    region::Span,
    sys::{Handle, RequestParam, Status, StatusPtr, consts},
};

/// How long the thread gives a forced close: it is a matter of microseconds where it ends at all.
const CLOSE_LIMIT: Duration = Duration::from_millis(50);

/// What the completion callback is given: which operation, and where to say so.
pub(super) struct Notice {
    pub(super) queue: *const Queue,
    pub(super) op: u64,
}

/// An operation under way, with the memory UCX may touch for it.
pub(super) struct Op<T> {
    notice: Notice,
    pub(super) tag: T,
    header: Vec<u8>,
    body: Body,
}

/// What a message carries beside its header.
pub(crate) enum Body {
    /// Kept with the operation.
    Bytes(Vec<u8>),
    /// In the region; the owner keeps those blocks pinned until the operation is done.
    Region(Span),
}

impl<T> Connection<T> {
    /// Sends a message. Ends in one `Done` with `tag`.
    pub(crate) fn send(&mut self, id: u32, header: Vec<u8>, body: Body, tag: T) {
        let eager = match &body {
            Body::Bytes(_) => consts::AM_SEND_EAGER,
            Body::Region(_) => 0,
        };
        let op = self.begin(tag, header, body);
        let params = Self::params(
            &raw const self.ops[&op].notice,
            callbacks::sent as *const c_void,
            eager,
        );
        let (header, body) = {
            let op = &self.ops[&op];
            let body: (*const u8, usize) = match &op.body {
                Body::Bytes(bytes) => (bytes.as_ptr(), bytes.len()),
                Body::Region(span) => (span.ptr.cast_const(), span.len),
            };
            ((op.header.as_ptr(), op.header.len()), body)
        };
        // SAFETY: the endpoint is open; header and body stay where they are until the operation is done, the first
        // two owned by the boxed operation, the region pinned by its owner.
        let raw = unsafe {
            let send = self.worker.functions().ucp_am_send_nbx;
            send(
                self.ep,
                id,
                header.0.cast(),
                header.1,
                body.0.cast(),
                body.1,
                &raw const params,
            )
        };
        self.started(op, raw, 0);
    }

    /// Receives a rendezvous payload into `into`, whose owner keeps it pinned until the `Done` with `tag`.
    pub(crate) fn receive(&mut self, data: *mut c_void, into: Span, tag: T) {
        let op = self.begin(tag, Vec::new(), Body::Region(into));
        let params = Self::params(
            &raw const self.ops[&op].notice,
            callbacks::received as *const c_void,
            0,
        );
        // SAFETY: `data` is a descriptor handed over by a message and not given back yet; `into` is inside the
        // region and pinned.
        let raw = unsafe {
            let receive = self.worker.functions().ucp_am_recv_data_nbx;
            receive(
                self.worker.raw,
                data,
                into.ptr.cast(),
                into.len,
                &raw const params,
            )
        };
        self.started(op, raw, into.len);
    }

    /// Reads a payload that has arrived and gives it back. None for a rendezvous, which is refused.
    #[expect(clippy::needless_pass_by_value, reason = "a payload is given back once")]
    pub(crate) fn consume<R>(&mut self, payload: Payload, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let result = match &payload {
            Payload::Bytes(bytes) => Some(read(bytes)),
            Payload::Held { data, len } => {
                // SAFETY: UCX holds `len` bytes there until they are released, below.
                Some(read(unsafe { slice::from_raw_parts(data.cast::<u8>(), *len) }))
            }
            Payload::Rendezvous { .. } => None,
        };
        self.release(&payload);
        result
    }

    /// Gives a payload back unread; a rendezvous is not fetched.
    pub(crate) fn discard(&mut self, payload: Payload) {
        self.release(&payload);
        drop(payload);
    }

    fn release(&mut self, payload: &Payload) {
        if let Payload::Held { data, .. } | Payload::Rendezvous { data, .. } = payload {
            // SAFETY: handed over by a message and not given back before, as payloads are consumed by value.
            unsafe { (self.worker.functions().ucp_am_data_release)(self.worker.raw, *data) };
        }
    }

    /// Closes the endpoint by force, which asks nothing of the peer, and lets UCX work until it, every operation and
    /// whatever UCX had put off has ended: a UCX worker that is destroyed while a failure is still on its way frees
    /// it twice (1.22). What has not ended by the limit ends with the worker all the same.
    pub(super) fn close(&mut self) {
        let give_up = Instant::now() + CLOSE_LIMIT;
        let params = RequestParam {
            op_attr_mask: consts::OP_FLAGS,
            ..Self::params(ptr::null(), ptr::null(), consts::EP_CLOSE_FORCE)
        };
        let ep = std::mem::replace(&mut self.ep, ptr::null_mut());
        // SAFETY: the endpoint is open, and its handle is used no more.
        let request = unsafe { (self.worker.functions().ucp_ep_close_nbx)(ep, &raw const params) };
        let pending = matches!(StatusPtr::of(request), StatusPtr::Pending);
        let check = self.worker.functions().ucp_request_check_status;
        // SAFETY: the request is released below, after its last use.
        let closed = || !pending || unsafe { check(request) } != Status::IN_PROGRESS;
        loop {
            let worked = self.progress();
            while let Some(happening) = self.next() {
                if let Happening::Message(message) = happening {
                    self.discard(message.payload);
                }
            }
            if !worked && closed() && self.ops.is_empty() {
                break;
            }
            if Instant::now() > give_up {
                tracing::warn!(
                    operations = self.ops.len(),
                    "a forced close does not end: its UCX worker is destroyed"
                );
                break;
            }
        }
        if pending {
            // SAFETY: this is its one release.
            unsafe { (self.worker.functions().ucp_request_free)(request) };
        }
    }

    fn begin(&mut self, tag: T, header: Vec<u8>, body: Body) -> u64 {
        self.last_op += 1;
        let op = self.last_op;
        let notice = Notice {
            queue: ptr::from_ref::<Queue>(&self.worker.queue),
            op,
        };
        self.ops.insert(
            op,
            Box::new(Op {
                notice,
                tag,
                header,
                body,
            }),
        );
        op
    }

    fn params(notice: *const Notice, cb: *const c_void, flags: u32) -> RequestParam {
        RequestParam {
            op_attr_mask: consts::OP_CALLBACK
                | consts::OP_USER_DATA
                | consts::OP_FLAGS
                | consts::OP_MEMORY_TYPE,
            flags,
            request: ptr::null_mut(),
            cb,
            datatype: 0,
            user_data: notice.cast_mut().cast(),
            reply_buffer: ptr::null_mut(),
            memory_type: consts::MEMORY_TYPE_HOST,
            recv_info: ptr::null_mut(),
            memh: ptr::null_mut(),
            remote_datatype: 0,
            remote: ptr::null(),
            remote_count: 0,
        }
    }

    /// An operation that ended at once gets its event here, as no callback will come.
    fn started(&mut self, op: u64, raw: Handle, len: usize) {
        if let StatusPtr::Ended(status) = StatusPtr::of(raw) {
            self.worker.queue.push(Raw::Done { op, status, len });
        }
    }
}
