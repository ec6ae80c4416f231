//! The functions UCX calls. They run inside its calls on the progress thread, note what happened, and return.

use std::{ffi::c_void, slice};

use super::{
    ops::Notice,
    queue::{ConnRequest, Message, Payload, Queue, Raw},
};
use crate::{
    message::MAX_HEADER_BYTES,
    sys::{AmRecvParam, Handle, Status, consts},
};

/// What an active-message handler is registered with.
pub(super) struct Inbound {
    pub(super) queue: *const Queue,
    pub(super) id: u32,
}

pub(super) unsafe extern "C" fn connect(request: Handle, arg: *mut c_void) {
    // SAFETY: `arg` is the queue, which outlives the listener.
    let queue = unsafe { &*arg.cast::<Queue>() };
    queue.push(Raw::Connect(ConnRequest(request)));
}

pub(super) unsafe extern "C" fn ep_failed(arg: *mut c_void, _ep: Handle, status: Status) {
    // SAFETY: `arg` is the queue, which outlives the endpoint.
    let queue = unsafe { &*arg.cast::<Queue>() };
    queue.push(Raw::Failed(status));
}

pub(super) unsafe extern "C" fn sent(request: Handle, status: Status, user_data: *mut c_void) {
    // SAFETY: the contract of `done` is this callback's.
    unsafe { done(request, status, 0, user_data) };
}

pub(super) unsafe extern "C" fn received(
    request: Handle,
    status: Status,
    len: usize,
    user_data: *mut c_void,
) {
    // SAFETY: the contract of `done` is this callback's.
    unsafe { done(request, status, len, user_data) };
}

/// # Safety
/// `user_data` is the notice of an operation that the connection keeps until this event has been taken.
unsafe fn done(request: Handle, status: Status, len: usize, user_data: *mut c_void) {
    // SAFETY: by the contract; the queue outlives the operations.
    let (queue, op) = unsafe {
        let notice = &*user_data.cast::<Notice>();
        (&*notice.queue, notice.op)
    };
    queue.push(Raw::Done { op, status, len });
    if !request.is_null() {
        // SAFETY: the request is complete and this is its one release.
        unsafe { (queue.ucx.functions().ucp_request_free)(request) };
    }
}

pub(super) unsafe extern "C" fn message(
    arg: *mut c_void,
    header: *const c_void,
    header_len: usize,
    data: *mut c_void,
    len: usize,
    param: *const AmRecvParam,
) -> Status {
    // SAFETY: `arg` is the registration, `param` valid for the call; both by the interface.
    let (inbound, param) = unsafe { (&*arg.cast::<Inbound>(), &*param) };
    let known = if header_len <= MAX_HEADER_BYTES {
        header_len
    } else {
        0
    };
    let header = if known == 0 {
        Vec::new()
    } else {
        // SAFETY: `header_len` readable bytes by the interface.
        unsafe { slice::from_raw_parts(header.cast::<u8>(), known) }.to_vec()
    };
    let (payload, keep) = if param.recv_attr & consts::AM_RECV_RNDV != 0 {
        (Payload::Rendezvous { data, len }, true)
    } else if param.recv_attr & consts::AM_RECV_DATA != 0 {
        (Payload::Held { data, len }, true)
    } else if len == 0 || data.is_null() {
        (Payload::Bytes(Vec::new()), false)
    } else {
        // SAFETY: `len` readable bytes by the interface, valid during the call only.
        (
            Payload::Bytes(unsafe { slice::from_raw_parts(data.cast::<u8>(), len) }.to_vec()),
            false,
        )
    };
    // SAFETY: the queue outlives the worker, and so its handlers.
    unsafe { &*inbound.queue }.push(Raw::Message(Message {
        id: inbound.id,
        header,
        payload,
    }));
    if keep { Status::IN_PROGRESS } else { Status::OK }
}
