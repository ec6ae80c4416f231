//! What `innkeeper chat` says when it cannot talk.

use std::net::UdpSocket;
use std::path::PathBuf;

use crate::program::check_mistake;
use crate::server::{Server, certificate};

/// A file with this text.
fn file(name: &str, text: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("written");
    path.display().to_string()
}

fn check(server: &str, ca: &str, said: &str) {
    check_mistake(&["chat", "--server", server, "--ca", ca, "hello"], said);
}

#[test]
fn a_certificate_that_is_not_trusted_is_no_absent_server() {
    let server = Server::start();
    let address = server.secure.to_string();
    let other = file("other.crt", &certificate().0);
    let said = format!("innkeeper: the certificate of {address} is not vouched for by {other}: ");
    check(&address, &other, &said);
    let nothing = file("nothing.crt", "nothing");
    check(
        &address,
        &nothing,
        &format!("{nothing} holds no certificate to trust"),
    );
    check(
        &address,
        "no/such.crt",
        "no/such.crt, which the first `innkeeper up` makes",
    );
    // The right one gets through, to a server without models.
    let right = file("right.crt", &server.cert_pem);
    check(&address, &right, "/v1/models");
}

#[test]
fn a_server_that_is_not_there_is_known_at_once() {
    let free = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address").to_string();
    drop(free);
    let ca = file("some.crt", &certificate().0);
    check(
        &address,
        &ca,
        &format!("innkeeper: nothing listens on {address} (UDP): is `innkeeper up` running?"),
    );
}
