//! A server that looks like a gateway from outside: doors with a certificate, an empty house.

use std::net::SocketAddr;

use api::{Doors, DoorsConfig, Tls};
use axum::Router;
use axum::routing::get;
use tokio::runtime::Runtime;

/// Serves until dropped.
pub(crate) struct Server {
    pub(crate) plain: SocketAddr,
    pub(crate) secure: SocketAddr,
    pub(crate) cert_pem: String,
    _runtime: Runtime,
}

impl Server {
    pub(crate) fn start() -> Self {
        let (cert_pem, key_pem) = certificate();
        let any = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let config = DoorsConfig {
            plain: any,
            secure: any,
            tls: Some(Tls::from_pem(cert_pem.as_bytes(), key_pem.as_bytes()).expect("a certificate")),
            ..DoorsConfig::default()
        };
        let runtime = Runtime::new().expect("a runtime");
        let doors = runtime.block_on(Doors::bind(config)).expect("free ports");
        let (plain, secure) = (doors.plain_addr(), doors.secure_addr());
        let router = Router::new().route("/rooms", get(|| async { "[]" }));
        // Ends with the runtime.
        runtime.spawn(api::serve(
            doors,
            router,
            std::future::pending(),
            std::future::pending(),
        ));
        Self {
            plain: plain.expect("a plain door"),
            secure: secure.expect("a secure door"),
            cert_pem,
            _runtime: runtime,
        }
    }
}

/// A certificate for `localhost` that vouches for itself, and its key.
pub(crate) fn certificate() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    (made.cert.pem(), made.signing_key.serialize_pem())
}
