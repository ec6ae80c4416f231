//! What the client says when it cannot connect: each reason is another thing to do for its user.

use std::net::UdpSocket;

use api::client::{Client, ClientConfig, ClientError};

use crate::harness::Server;
use crate::mock::{MockSubmit, hello};

async fn check(config: ClientConfig, expected: impl Fn(&ClientError) -> bool) {
    let error = Client::connect(config).await.err().unwrap();
    assert!(expected(&error), "{error:?}");
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_named_as_such() {
    let server = Server::start(MockSubmit::new(hello)).await;
    let of = |name: &str, pem: &str| ClientConfig::new(server.secure, name, pem.into());
    let untrusted = |error: &ClientError| matches!(error, ClientError::Untrusted { .. });
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    check(of("localhost", &other.cert.pem()), untrusted).await;
    check(of("another.name", &server.cert_pem), untrusted).await;
}

#[tokio::test]
async fn where_nobody_listens_is_known_at_once() {
    let pem = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])
        .unwrap()
        .cert
        .pem();
    // Free again when dropped; the system then refuses what comes for it.
    let addr = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = ClientConfig::new(addr, "localhost", pem.into());
    check(config, |error| matches!(error, ClientError::Refused { .. })).await;
}
