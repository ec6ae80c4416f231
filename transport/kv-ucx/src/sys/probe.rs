//! Checks the structs and constants with a C program against UCX's own headers.

#![allow(clippy::unwrap_used, reason = "helpers of a test")]

use std::{
    env,
    ffi::c_uint,
    fmt::Write as _,
    fs,
    mem::{offset_of, size_of},
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    AmHandlerParam, AmRecvParam, EpAttr, EpParams, ListenerAttr, ListenerParams, Params, RequestParam,
    SockAddr, Status, TransportEntry, WorkerParams, consts,
};

macro_rules! layout {
    ($($c:literal = $value:expr;)*) => { vec![$(($c, $value)),*] };
}

/// (C expression, value here).
fn expected() -> Vec<(&'static str, usize)> {
    layout! {
        "sizeof(ucs_status_t)" = size_of::<Status>();
        "sizeof(ucs_cpu_set_t)" = 128;
        "sizeof(ucs_memory_type_t)" = size_of::<c_uint>();
        "sizeof(ucp_params_t)" = size_of::<Params>();
        "offsetof(ucp_params_t, features)" = offset_of!(Params, features);
        "sizeof(ucp_worker_params_t)" = size_of::<WorkerParams>();
        "offsetof(ucp_worker_params_t, events)" = offset_of!(WorkerParams, events);
        "offsetof(ucp_worker_params_t, flags)" = offset_of!(WorkerParams, flags);
        "sizeof(ucs_sock_addr_t)" = size_of::<SockAddr>();
        "sizeof(ucp_listener_params_t)" = size_of::<ListenerParams>();
        "offsetof(ucp_listener_params_t, conn_handler)" = offset_of!(ListenerParams, conn_handler);
        "sizeof(ucp_listener_attr_t)" = size_of::<ListenerAttr>();
        "sizeof(ucp_ep_params_t)" = size_of::<EpParams>();
        "offsetof(ucp_ep_params_t, err_handler)" = offset_of!(EpParams, err_handler);
        "offsetof(ucp_ep_params_t, sockaddr)" = offset_of!(EpParams, sockaddr);
        "offsetof(ucp_ep_params_t, conn_request)" = offset_of!(EpParams, conn_request);
        "sizeof(ucp_transport_entry_t)" = size_of::<TransportEntry>();
        "sizeof(ucp_ep_attr_t)" = size_of::<EpAttr>();
        "offsetof(ucp_ep_attr_t, transports)" = offset_of!(EpAttr, transports);
        "sizeof(ucp_am_recv_param_t)" = size_of::<AmRecvParam>();
        "sizeof(ucp_am_handler_param_t)" = size_of::<AmHandlerParam>();
        "offsetof(ucp_am_handler_param_t, cb)" = offset_of!(AmHandlerParam, cb);
        "sizeof(ucp_request_param_t)" = size_of::<RequestParam>();
        "offsetof(ucp_request_param_t, user_data)" = offset_of!(RequestParam, user_data);
        "offsetof(ucp_request_param_t, memory_type)" = offset_of!(RequestParam, memory_type);
        "offsetof(ucp_request_param_t, memh)" = offset_of!(RequestParam, memh);
        "UCP_FEATURE_WAKEUP|UCP_FEATURE_AM" = narrow(consts::FEATURE_WAKEUP | consts::FEATURE_AM);
        "UCP_EP_PARAM_FIELD_CONN_REQUEST" = narrow(consts::EP_CONN_REQUEST);
        "UCP_ERR_HANDLING_MODE_PEER" = consts::ERR_MODE_PEER as usize;
        "UCP_AM_FLAG_PERSISTENT_DATA" = consts::AM_PERSISTENT_DATA as usize;
        "UCP_AM_SEND_FLAG_EAGER" = consts::AM_SEND_EAGER as usize;
        "UCP_AM_RECV_ATTR_FLAG_RNDV" = narrow(consts::AM_RECV_RNDV);
        "UCP_OP_ATTR_FIELD_MEMORY_TYPE" = consts::OP_MEMORY_TYPE as usize;
        "UCP_EP_ATTR_FIELD_TRANSPORTS" = narrow(consts::EP_ATTR_TRANSPORTS);
        "UCS_THREAD_MODE_SINGLE" = consts::THREAD_MODE_SINGLE as usize;
    }
}

fn narrow(value: u64) -> usize {
    usize::try_from(value).unwrap()
}

/// The folder that holds `ucp/api/ucp.h`: the fetched wheel's, else the system's.
fn headers() -> PathBuf {
    let exe = env::current_exe().unwrap();
    // Cargo's folder for tests' files, beside the profile's folder that holds deps/<this test>.
    let cache = exe.ancestors().nth(3).unwrap().join("tmp");
    let fetched = crate::fetch_wheel(&cache, &mut |_, _| ());
    if let Ok(library) = &fetched {
        return library.ancestors().nth(2).unwrap().join("include");
    }
    let system = Path::new("/usr/include");
    assert!(
        system.join("ucp/api/ucp.h").is_file(),
        "no UCX headers: {fetched:?}"
    );
    system.to_owned()
}

#[test]
fn structs_and_constants_are_those_of_the_headers() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("probe.c"), folder.path().join("probe"));
    let mut code =
        String::from("#include <stddef.h>\n#include <stdio.h>\n#include <ucp/api/ucp.h>\nint main(void) {\n");
    for (expression, _) in expected() {
        writeln!(code, "printf(\"%zu\\n\", (size_t)({expression}));").unwrap();
    }
    code.push_str("return 0; }\n");
    fs::write(&source, code).unwrap();
    let status = Command::new("cc")
        .arg("-I")
        .arg(headers())
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status()
        .unwrap();
    assert!(status.success(), "the probe does not compile");
    let printed = String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap();
    let values: Vec<usize> = printed.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(values.len(), expected().len());
    for ((expression, here), there) in expected().into_iter().zip(values) {
        assert_eq!(here, there, "{expression}: here {here}, in the headers {there}");
    }
}
