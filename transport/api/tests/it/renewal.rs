//! A certificate that is replaced while the doors are open.

use std::sync::Arc;

use api::Tls;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;

use crate::harness::Server;
use crate::mock::{MockSubmit, hello};

struct Made {
    cert: String,
    key: String,
}

fn made() -> Made {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    Made {
        cert: made.cert.pem(),
        key: made.signing_key.serialize_pem(),
    }
}

fn trusting(cert: &str, alpn: &[u8]) -> rustls::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(cert.as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    config
}

/// Whether this certificate is what both secure doors show.
async fn check(server: &Server, cert: &str, shown: bool) {
    let stream = TcpStream::connect(server.secure).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(trusting(cert, b"h2")));
    let over_tcp = connector
        .connect(ServerName::try_from("localhost").unwrap(), stream)
        .await;
    assert_eq!(over_tcp.is_ok(), shown, "over TCP: {:?}", over_tcp.err());
    let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(trusting(cert, b"h3")).unwrap();
    let mut endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(crypto)));
    let over_quic = endpoint.connect(server.secure, "localhost").unwrap().await;
    assert_eq!(over_quic.is_ok(), shown, "over QUIC: {:?}", over_quic.err());
}

#[tokio::test]
async fn who_comes_after_a_renewal_is_shown_the_new_one() {
    let (old, new) = (made(), made());
    let tls = Tls::from_pem(old.cert.as_bytes(), old.key.as_bytes()).unwrap();
    let server = Server::showing(MockSubmit::new(hello), tls.clone(), old.cert.clone()).await;
    check(&server, &old.cert, true).await;
    check(&server, &new.cert, false).await;
    // They do not belong together: nothing changes.
    tls.renew(new.cert.as_bytes(), old.key.as_bytes()).unwrap_err();
    tls.renew(b"", new.key.as_bytes()).unwrap_err();
    check(&server, &old.cert, true).await;
    tls.renew(new.cert.as_bytes(), new.key.as_bytes()).unwrap();
    check(&server, &new.cert, true).await;
    check(&server, &old.cert, false).await;
}
