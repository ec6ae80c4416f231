//! Making a port: configuration, context, worker, handlers, listener.

use std::{
    collections::HashMap,
    ffi::CString,
    marker::PhantomData,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    ptr,
};

use super::{
    Port,
    callbacks::{self, Inbound},
    queue::Queue,
};
use crate::{
    Ucx, UcxConfig, message,
    sys::{self, Handle, SockAddr, Status, consts},
};

const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const IDS: [u32; 4] = [
    message::ID_READ,
    message::ID_DATA,
    message::ID_REFUSE,
    message::ID_CANCEL,
];

/// Which step failed, and UCX's words.
#[derive(Clone, Debug, thiserror::Error)]
#[error("UCX {step} failed: {why}")]
pub struct OpenError {
    step: &'static str,
    why: String,
}

impl<T> Port<T> {
    /// Opens everything, listening on `bind` (port 0: the system's choice).
    pub(crate) fn open(ucx: &Ucx, config: &UcxConfig, bind: SocketAddr) -> Result<Self, OpenError> {
        let fail = |step, status: Status| OpenError {
            step,
            why: ucx.describe(status),
        };
        let context = create_context(ucx, config)?;
        let mut port = Self {
            ucx: ucx.clone(),
            context,
            worker: ptr::null_mut(),
            listener: ptr::null_mut(),
            efd: -1,
            address: bind,
            queue: Box::new(Queue::new(ucx.clone())),
            inbound: Box::default(),
            ops: HashMap::new(),
            last_op: 0,
            _one_thread: PhantomData,
        };
        let functions = ucx.functions();
        let params = worker_params();
        // SAFETY: valid parameters and out-pointers; the worker is used by this thread only.
        unsafe {
            (functions.ucp_worker_create)(context, &raw const params, &raw mut port.worker)
                .result()
                .map_err(|s| fail("worker creation", s))?;
            (functions.ucp_worker_get_efd)(port.worker, &raw mut port.efd)
                .result()
                .map_err(|s| fail("event descriptor", s))?;
        }
        port.register().map_err(|s| fail("message handler", s))?;
        port.listen(bind).map_err(|s| fail("listener", s))?;
        Ok(port)
    }

    fn register(&mut self) -> Result<(), Status> {
        let queue = ptr::from_ref::<Queue>(&self.queue);
        self.inbound = IDS.map(|id| Inbound { queue, id }).into();
        for inbound in &self.inbound {
            let params = sys::AmHandlerParam {
                field_mask: consts::AM_HANDLER_ALL,
                id: inbound.id,
                flags: consts::AM_WHOLE_MSG | consts::AM_PERSISTENT_DATA,
                cb: Some(callbacks::message),
                arg: ptr::from_ref(inbound).cast_mut().cast(),
            };
            // SAFETY: valid parameters; the argument and its queue outlive the worker.
            let set = unsafe {
                (self.ucx.functions().ucp_worker_set_am_recv_handler)(self.worker, &raw const params)
            };
            set.result()?;
        }
        Ok(())
    }

    fn listen(&mut self, bind: SocketAddr) -> Result<(), Status> {
        let raw = encode_address(bind);
        let params = sys::ListenerParams {
            field_mask: consts::LISTENER_SOCK_ADDR | consts::LISTENER_CONN_HANDLER,
            sockaddr: SockAddr {
                addr: raw.bytes.as_ptr().cast(),
                len: raw.len,
            },
            accept_handler: sys::ConnHandler {
                cb: None,
                arg: ptr::null_mut(),
            },
            conn_handler: sys::ConnHandler {
                cb: Some(callbacks::connect),
                arg: ptr::from_ref::<Queue>(&self.queue).cast_mut().cast(),
            },
        };
        let mut attr = sys::ListenerAttr {
            field_mask: consts::LISTENER_ATTR_SOCKADDR,
            sockaddr: [0; 16],
        };
        let functions = self.ucx.functions();
        // SAFETY: valid parameters and out-pointers; the queue outlives the listener.
        unsafe {
            (functions.ucp_listener_create)(self.worker, &raw const params, &raw mut self.listener)
                .result()?;
            (functions.ucp_listener_query)(self.listener, &raw mut attr).result()?;
        }
        // Family and, in network order, port open every socket address.
        let head = attr.sockaddr[0].to_ne_bytes();
        self.address.set_port(u16::from_be_bytes([head[2], head[3]]));
        Ok(())
    }
}

fn create_context(ucx: &Ucx, config: &UcxConfig) -> Result<Handle, OpenError> {
    let functions = ucx.functions();
    let fail = |step, status: Status| OpenError {
        step,
        why: ucx.describe(status),
    };
    let mut options = ptr::null_mut();
    // SAFETY: null prefix and file mean the defaults; valid out-pointer.
    unsafe { (functions.ucp_config_read)(ptr::null(), ptr::null(), &raw mut options) }
        .result()
        .map_err(|s| fail("configuration", s))?;
    for (name, value) in settings(config) {
        let (Ok(name_c), Ok(value_c)) = (CString::new(name), CString::new(value)) else {
            continue;
        };
        // SAFETY: the configuration is alive, both strings are C strings. A version that lacks the option says so.
        let status = unsafe { (functions.ucp_config_modify)(options, name_c.as_ptr(), value_c.as_ptr()) };
        if status.is_error() {
            tracing::debug!(name, status = status.0, "UCX does not know this option");
        }
    }
    let params = sys::Params {
        field_mask: consts::PARAM_FEATURES,
        // Active messages and wake-up alone: with the one-sided features any peer could write anywhere.
        features: consts::FEATURE_AM | consts::FEATURE_WAKEUP,
        request_size: 0,
        request_init: ptr::null_mut(),
        request_cleanup: ptr::null_mut(),
        tag_sender_mask: 0,
        mt_workers_shared: 0,
        estimated_num_eps: 0,
        estimated_num_ppn: 0,
        name: ptr::null(),
        node_local_id: 0,
    };
    let mut context = ptr::null_mut();
    // SAFETY: valid parameters, configuration and out-pointer; the configuration is released once, after its use.
    let status = unsafe {
        let init = functions.ucp_init_version;
        let status = init(
            consts::API_MAJOR,
            consts::API_MINOR,
            &raw const params,
            options,
            &raw mut context,
        );
        (functions.ucp_config_release)(options);
        status
    };
    status.result().map_err(|s| fail("initialisation", s))?;
    Ok(context)
}

/// What is set over the environment and the defaults.
fn settings(config: &UcxConfig) -> Vec<(&'static str, String)> {
    let env = |name: &str| std::env::var(name).ok();
    let mut settings = Vec::new();
    if let Some(tls) = config.effective_tls(env("UCX_TLS").as_deref()) {
        settings.push(("TLS", tls));
    }
    if let Some(devices) = config.effective_devices(env("UCX_NET_DEVICES").as_deref()) {
        settings.push(("NET_DEVICES", devices));
    }
    // Without these shared memory is left out of endpoints that must notice a dead peer.
    settings.push(("POSIX_ERROR_HANDLING", "y".into()));
    settings.push(("SYSV_ERROR_HANDLING", "y".into()));
    // A worker made anew keeps its port.
    settings.push(("TCP_CM_REUSEADDR", "y".into()));
    for (option, value) in [("KEEPALIVE_INTERVAL", "1s"), ("TCP_USER_TIMEOUT", "3s")] {
        if env(&format!("UCX_{option}")).is_none() {
            settings.push((option, value.into()));
        }
    }
    settings
}

fn worker_params() -> sys::WorkerParams {
    sys::WorkerParams {
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
    }
}

/// A socket address as C has it.
pub(super) struct RawAddress {
    pub(super) bytes: [u8; 28],
    pub(super) len: u32,
}

pub(super) fn encode_address(address: SocketAddr) -> RawAddress {
    let mut bytes = [0u8; 28];
    bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
    let (family, len) = match address.ip() {
        IpAddr::V4(ip) => {
            bytes[4..8].copy_from_slice(&ip.octets());
            (AF_INET, 16)
        }
        IpAddr::V6(ip) => {
            let octets: [u8; 16] = Ipv6Addr::octets(&ip);
            bytes[8..24].copy_from_slice(&octets);
            (AF_INET6, 28)
        }
    };
    bytes[..2].copy_from_slice(&family.to_ne_bytes());
    RawAddress { bytes, len }
}
