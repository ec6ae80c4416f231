//! Whether anybody is there at all. QUIC's own sockets are not connected, so they never hear the system's "port unreachable".

use std::future::pending;
use std::io;
use std::net::SocketAddr;

use tokio::net::UdpSocket;

/// Resolves when the other machine says that nobody listens on `addr`. Never otherwise: to be raced against a handshake, which
/// has a deadline.
pub(super) async fn refused(local: SocketAddr, addr: SocketAddr) -> io::Error {
    match knock(local, addr).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => error,
        // It answered, or the system cannot tell.
        _ => pending().await,
    }
}

async fn knock(local: SocketAddr, addr: SocketAddr) -> io::Result<usize> {
    let socket = UdpSocket::bind(local).await?;
    socket.connect(addr).await?;
    // No QUIC packet begins with a zero: whoever listens drops it.
    socket.send(&[0]).await?;
    socket.recv(&mut [0; 1]).await
}
