//! The functions, found by name.

use std::{
    ffi::{c_char, c_int, c_uint, c_void},
    mem::ManuallyDrop,
};

use libloading::Library;

use super::{
    AmHandlerParam, EpAttr, EpParams, Handle, ListenerAttr, ListenerParams, Params, RequestParam, Status,
    WorkerParams,
};

macro_rules! functions {
    ($($name:ident($($arg:ty),* $(,)?) $(-> $ret:ty)?;)*) => {
        /// Function pointers of one loaded `libucp`. The library is never unloaded: UCX leaves threads' and
        /// modules' state behind.
        pub(crate) struct Functions {
            $(pub(crate) $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
            _library: ManuallyDrop<Library>,
        }

        impl Functions {
            /// Finds every function.
            ///
            /// # Safety
            /// `library` must be UCX's `libucp`, version 1.13 or later.
            pub(crate) unsafe fn resolve(library: Library) -> Result<Self, libloading::Error> {
                // SAFETY: the names have these types in `ucp.h`, by the caller's promise.
                unsafe {
                    Ok(Self {
                        $($name: *library.get(concat!(stringify!($name), "\0").as_bytes())?,)*
                        _library: ManuallyDrop::new(library),
                    })
                }
            }
        }
    };
}

functions! {
    ucp_get_version(*mut c_uint, *mut c_uint, *mut c_uint);
    ucs_status_string(Status) -> *const c_char;
    ucp_config_read(*const c_char, *const c_char, *mut Handle) -> Status;
    ucp_config_modify(Handle, *const c_char, *const c_char) -> Status;
    ucp_config_release(Handle);
    ucp_init_version(c_uint, c_uint, *const Params, Handle, *mut Handle) -> Status;
    ucp_cleanup(Handle);
    ucp_worker_create(Handle, *const WorkerParams, *mut Handle) -> Status;
    ucp_worker_destroy(Handle);
    ucp_worker_progress(Handle) -> c_uint;
    ucp_worker_get_efd(Handle, *mut c_int) -> Status;
    ucp_worker_arm(Handle) -> Status;
    ucp_worker_set_am_recv_handler(Handle, *const AmHandlerParam) -> Status;
    ucp_listener_create(Handle, *const ListenerParams, *mut Handle) -> Status;
    ucp_listener_query(Handle, *mut ListenerAttr) -> Status;
    ucp_listener_reject(Handle, Handle) -> Status;
    ucp_listener_destroy(Handle);
    ucp_ep_create(Handle, *const EpParams, *mut Handle) -> Status;
    ucp_ep_query(Handle, *mut EpAttr) -> Status;
    ucp_ep_close_nbx(Handle, *const RequestParam) -> Handle;
    ucp_am_send_nbx(Handle, c_uint, *const c_void, usize, *const c_void, usize, *const RequestParam) -> Handle;
    ucp_am_recv_data_nbx(Handle, Handle, *mut c_void, usize, *const RequestParam) -> Handle;
    ucp_am_data_release(Handle, *mut c_void);
    ucp_request_check_status(Handle) -> Status;
    ucp_request_free(Handle);
}
