//! The UCX context: what is set, and the library opened with it.

use std::{ffi::CString, ptr, rc::Rc};

use crate::{
    Ucx, UcxConfig,
    sys::{self, Handle, Status, consts},
};

/// Which step failed, and UCX's words.
#[derive(Clone, Debug, thiserror::Error)]
#[error("UCX {step} failed: {why}")]
pub struct OpenError {
    step: &'static str,
    why: String,
}

/// An open UCX, shared by its workers, which keep it alive.
pub(crate) struct Context {
    pub(super) ucx: Ucx,
    pub(super) raw: Handle,
}

impl Context {
    /// Opens UCX for active messages. The context stays on the thread that opened it.
    pub(crate) fn open(ucx: &Ucx, config: &UcxConfig) -> Result<Rc<Self>, OpenError> {
        let raw = create(ucx, config)?;
        Ok(Rc::new(Self {
            ucx: ucx.clone(),
            raw,
        }))
    }

    pub(super) fn fail(&self, step: &'static str, status: Status) -> OpenError {
        OpenError {
            step,
            why: self.ucx.describe(status),
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: alive until here, and every worker made from it is gone, as each holds a reference.
        unsafe { (self.ucx.functions().ucp_cleanup)(self.raw) }
    }
}

fn create(ucx: &Ucx, config: &UcxConfig) -> Result<Handle, OpenError> {
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

/// What is set unless the environment has it.
const DEFAULTS: [(&str, &str); 4] = [
    // So that a connection that is cut is noticed within seconds.
    ("KEEPALIVE_INTERVAL", "1s"),
    ("TCP_USER_TIMEOUT", "3s"),
    // A call of the kernel for each 8 KiB, which is UCX's default, costs more than copying them. `just bench kv` shows it.
    ("TCP_TX_SEG_SIZE", "256k"),
    ("TCP_RX_SEG_SIZE", "256k"),
];

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
    // Without these shared memory is left out of endpoints that must notice a dead peer. UCX leaves it out because a
    // dead peer can block the queue of a worker: here no other peer has that worker.
    settings.push(("POSIX_ERROR_HANDLING", "y".into()));
    settings.push(("SYSV_ERROR_HANDLING", "y".into()));
    for (option, value) in DEFAULTS {
        if env(&format!("UCX_{option}")).is_none() {
            settings.push((option, value.into()));
        }
    }
    settings
}
