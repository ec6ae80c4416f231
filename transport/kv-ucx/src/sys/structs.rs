//! Structs and constants of `ucp.h`, in C layout.

use std::{
    ffi::{c_char, c_int, c_uint, c_void},
    ptr,
};

use super::{Handle, Status};

/// Field masks and flags.
pub(crate) mod consts {
    pub(crate) const API_MAJOR: u32 = 1;
    /// The oldest interface this crate's structs belong to.
    pub(crate) const API_MINOR: u32 = 13;

    pub(crate) const PARAM_FEATURES: u64 = 1;
    pub(crate) const FEATURE_WAKEUP: u64 = 1 << 4;
    pub(crate) const FEATURE_AM: u64 = 1 << 6;

    pub(crate) const WORKER_THREAD_MODE: u64 = 1;
    pub(crate) const WORKER_FLAGS: u64 = 1 << 5;
    pub(crate) const WORKER_IGNORE_REQUEST_LEAK: u64 = 1;
    pub(crate) const THREAD_MODE_SINGLE: u32 = 0;

    pub(crate) const LISTENER_SOCK_ADDR: u64 = 1;
    pub(crate) const LISTENER_CONN_HANDLER: u64 = 1 << 2;
    pub(crate) const LISTENER_ATTR_SOCKADDR: u64 = 1;

    pub(crate) const EP_ERR_MODE: u64 = 1 << 1;
    pub(crate) const EP_ERR_HANDLER: u64 = 1 << 2;
    pub(crate) const EP_SOCK_ADDR: u64 = 1 << 4;
    pub(crate) const EP_FLAGS: u64 = 1 << 5;
    pub(crate) const EP_CONN_REQUEST: u64 = 1 << 6;
    pub(crate) const EP_FLAG_CLIENT_SERVER: u32 = 1;
    pub(crate) const EP_FLAG_NO_LOOPBACK: u32 = 1 << 1;
    pub(crate) const ERR_MODE_PEER: u32 = 1;
    pub(crate) const EP_ATTR_TRANSPORTS: u64 = 1 << 3;
    pub(crate) const EP_CLOSE_FORCE: u32 = 1;

    pub(crate) const AM_HANDLER_ALL: u64 = 0b1111;
    pub(crate) const AM_WHOLE_MSG: u32 = 1;
    pub(crate) const AM_PERSISTENT_DATA: u32 = 1 << 1;
    pub(crate) const AM_SEND_EAGER: u32 = 1 << 1;
    pub(crate) const AM_RECV_DATA: u64 = 1 << 16;
    pub(crate) const AM_RECV_RNDV: u64 = 1 << 17;

    pub(crate) const OP_CALLBACK: u32 = 1 << 1;
    pub(crate) const OP_USER_DATA: u32 = 1 << 2;
    pub(crate) const OP_FLAGS: u32 = 1 << 4;
    pub(crate) const OP_MEMORY_TYPE: u32 = 1 << 6;
    pub(crate) const MEMORY_TYPE_HOST: u32 = 0;
}

/// `ucp_params_t`.
#[repr(C)]
pub(crate) struct Params {
    pub(crate) field_mask: u64,
    pub(crate) features: u64,
    pub(crate) request_size: usize,
    pub(crate) request_init: Handle,
    pub(crate) request_cleanup: Handle,
    pub(crate) tag_sender_mask: u64,
    pub(crate) mt_workers_shared: c_int,
    pub(crate) estimated_num_eps: usize,
    pub(crate) estimated_num_ppn: usize,
    pub(crate) name: *const c_char,
    pub(crate) node_local_id: usize,
}

/// `ucp_worker_params_t`.
#[repr(C)]
pub(crate) struct WorkerParams {
    pub(crate) field_mask: u64,
    pub(crate) thread_mode: c_uint,
    pub(crate) cpu_mask: [u64; 16],
    pub(crate) events: c_uint,
    pub(crate) user_data: *mut c_void,
    pub(crate) event_fd: c_int,
    pub(crate) flags: u64,
    pub(crate) name: *const c_char,
    pub(crate) am_alignment: usize,
    pub(crate) client_id: u64,
}

/// `ucs_sock_addr_t`.
#[repr(C)]
#[derive(Copy, Clone)]
pub(crate) struct SockAddr {
    pub(crate) addr: *const c_void,
    pub(crate) len: u32,
}

impl SockAddr {
    pub(crate) const NONE: Self = Self {
        addr: ptr::null(),
        len: 0,
    };
}

/// `ucp_listener_conn_handler_t`, and of the same shape `ucp_listener_accept_handler_t`.
#[repr(C)]
pub(crate) struct ConnHandler {
    pub(crate) cb: Option<unsafe extern "C" fn(Handle, *mut c_void)>,
    pub(crate) arg: *mut c_void,
}

/// `ucp_listener_params_t`.
#[repr(C)]
pub(crate) struct ListenerParams {
    pub(crate) field_mask: u64,
    pub(crate) sockaddr: SockAddr,
    pub(crate) accept_handler: ConnHandler,
    pub(crate) conn_handler: ConnHandler,
}

/// `ucp_listener_attr_t`.
#[repr(C)]
pub(crate) struct ListenerAttr {
    pub(crate) field_mask: u64,
    pub(crate) sockaddr: [u64; 16],
}

/// `ucp_err_handler_t`.
#[repr(C)]
pub(crate) struct ErrHandler {
    pub(crate) cb: Option<unsafe extern "C" fn(*mut c_void, Handle, Status)>,
    pub(crate) arg: *mut c_void,
}

/// `ucp_ep_params_t`.
#[repr(C)]
pub(crate) struct EpParams {
    pub(crate) field_mask: u64,
    pub(crate) address: *const c_void,
    pub(crate) err_mode: c_uint,
    pub(crate) err_handler: ErrHandler,
    pub(crate) user_data: *mut c_void,
    pub(crate) flags: c_uint,
    pub(crate) sockaddr: SockAddr,
    pub(crate) conn_request: Handle,
    pub(crate) name: *const c_char,
    pub(crate) local_sockaddr: SockAddr,
}

/// `ucp_transport_entry_t`.
#[repr(C)]
#[derive(Copy, Clone)]
pub(crate) struct TransportEntry {
    pub(crate) transport_name: *const c_char,
    pub(crate) device_name: *const c_char,
}

/// `ucp_transports_t`.
#[repr(C)]
pub(crate) struct Transports {
    pub(crate) entries: *mut TransportEntry,
    pub(crate) num_entries: c_uint,
    pub(crate) entry_size: usize,
}

/// `ucp_ep_attr_t`.
#[repr(C)]
pub(crate) struct EpAttr {
    pub(crate) field_mask: u64,
    pub(crate) name: [c_char; 32],
    pub(crate) local_sockaddr: [u64; 16],
    pub(crate) remote_sockaddr: [u64; 16],
    pub(crate) transports: Transports,
    pub(crate) user_data: *mut c_void,
}

/// `ucp_am_recv_param_t`.
#[repr(C)]
pub(crate) struct AmRecvParam {
    pub(crate) recv_attr: u64,
    pub(crate) reply_ep: Handle,
}

/// `ucp_am_recv_callback_t`: argument, header, its length, data, its length, parameters.
pub(crate) type AmRecvCallback =
    unsafe extern "C" fn(*mut c_void, *const c_void, usize, *mut c_void, usize, *const AmRecvParam) -> Status;

/// `ucp_am_handler_param_t`.
#[repr(C)]
pub(crate) struct AmHandlerParam {
    pub(crate) field_mask: u64,
    pub(crate) id: c_uint,
    pub(crate) flags: u32,
    pub(crate) cb: Option<AmRecvCallback>,
    pub(crate) arg: *mut c_void,
}

/// `ucp_request_param_t`. `cb` is the C union of callbacks as an address.
#[repr(C)]
pub(crate) struct RequestParam {
    pub(crate) op_attr_mask: u32,
    pub(crate) flags: u32,
    pub(crate) request: *mut c_void,
    pub(crate) cb: *const c_void,
    pub(crate) datatype: u64,
    pub(crate) user_data: *mut c_void,
    pub(crate) reply_buffer: *mut c_void,
    pub(crate) memory_type: c_uint,
    pub(crate) recv_info: *mut c_void,
    pub(crate) memh: Handle,
    pub(crate) remote_datatype: u64,
    pub(crate) remote: *const c_void,
    pub(crate) remote_count: usize,
}
