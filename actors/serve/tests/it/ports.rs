//! Ports that are taken: by whom, and what then.

use std::net::{SocketAddr, TcpListener, UdpSocket};

use crate::program::{check_mistake, innkeeper};
use crate::server::Server;

/// Held as long as it lives, over TCP and UDP.
struct Taken {
    address: SocketAddr,
    _held: (TcpListener, UdpSocket),
}

fn take() -> Taken {
    let (address, held) = std::iter::repeat_with(|| TcpListener::bind("127.0.0.1:0").expect("a port"))
        .find_map(|tcp| {
            let address = tcp.local_addr().ok()?;
            let udp = UdpSocket::bind(address).ok()?;
            Some((address, (tcp, udp)))
        })
        .expect("a port free for both");
    Taken { address, _held: held }
}

/// Free when asked for.
fn free() -> String {
    take().address.to_string()
}

#[test]
fn a_port_that_is_taken_is_told_with_its_setting_and_the_way_out() {
    let held = take();
    let taken = held.address.to_string();
    for (flag, key) in [
        ("--http", "api.http"),
        ("--https", "api.https"),
        ("--admin", "admin.listen"),
        ("--listen", "mesh.listen"),
    ] {
        for command in ["up", "gateway"] {
            let mut arguments = vec![command.to_owned()];
            for other in ["--http", "--https", "--admin", "--listen"] {
                arguments.extend([
                    other.to_owned(),
                    if other == flag { taken.clone() } else { free() },
                ]);
            }
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let said = format!(
                "innkeeper: {key}: cannot listen on {taken}: Address already in use (os error 98); \
                 give another address with {flag} ADDR, or set {key}\n"
            );
            check_mistake(&arguments, &said);
        }
    }
}

/// What `doctor` says of the clients' plain port.
fn doctor(http: SocketAddr, admin: SocketAddr) -> String {
    let http = format!("api.http={http}");
    let admin = format!("admin.listen={admin}");
    let output = innkeeper(&["doctor", "--set", &http, "--set", &admin], &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    let line = text.lines().find(|line| line.starts_with("api.http"));
    line.unwrap_or_else(|| panic!("no line for api.http in\n{text}"))
        .to_owned()
}

#[test]
fn the_doctor_knows_its_own_ports() {
    let running = Server::start();
    let said = doctor(running.plain, running.plain);
    assert!(
        said.contains("most likely by the Innkeeper that answers on"),
        "{said}"
    );
    let other = take();
    let said = doctor(other.address, other.address);
    assert!(said.contains("no Innkeeper answers there"), "{said}");
}
