//! Roles and names in certificates.

use quinn::Connection;
use rustls::client::verify_server_name;
use rustls::server::ParsedCertificate;
use rustls_pki_types::{CertificateDer, ServerName};
use wire::Role;

/// The DNS name that stands for a role.
pub(crate) fn server_name(role: Role) -> String {
    format!("{}.innkeeper", role.name())
}

/// The DNS name that stands for a node's own name. A certificate for `*.node.innkeeper` lets its bearer choose.
pub(crate) fn node_name(node: &str) -> String {
    format!("{node}.node.innkeeper")
}

/// Whether a certificate, which was verified already, has this DNS name.
pub(crate) fn certified(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let Ok(certificate) = ParsedCertificate::try_from(certificate) else {
        return false;
    };
    ServerName::try_from(name).is_ok_and(|name| verify_server_name(&certificate, &name).is_ok())
}

/// What the peer has shown, verified already.
pub(crate) fn shown(connection: &Connection) -> Option<CertificateDer<'static>> {
    let chain = connection
        .peer_identity()?
        .downcast::<Vec<CertificateDer<'static>>>()
        .ok()?;
    chain.first().cloned()
}

#[cfg(test)]
mod tests {
    use super::{certified, node_name, server_name};
    use crate::identity::DevCa;
    use wire::Role;

    fn check(named: &[Role]) {
        let identity = DevCa::new().unwrap().issue("a-node", named).unwrap();
        for role in Role::ALL {
            assert_eq!(
                certified(&identity.chain[0], &server_name(role)),
                named.contains(&role),
                "{role} of {named:?}"
            );
        }
    }

    #[test]
    fn a_certificate_names_exactly_its_roles() {
        check(&[Role::Gateway]);
        check(&[Role::Prefill]);
        check(&[Role::Decode, Role::Mixed]);
        check(&Role::ALL);
    }

    #[track_caller]
    fn check_name(issued_for: &str, name: &str, certifies: bool) {
        let identity = DevCa::new().unwrap().issue(issued_for, &[Role::Decode]).unwrap();
        assert_eq!(certified(&identity.chain[0], &node_name(name)), certifies);
    }

    #[test]
    fn a_certificate_names_its_node_or_leaves_it_open() {
        check_name("decode-0", "decode-0", true);
        check_name("decode-0", "decode-1", false);
        check_name("decode-0", "*", false);
        check_name("*", "decode-0", true);
        check_name("*", "", false);
        check_name("a.rack-1", "a.rack-1", true);
        check_name("a_b", "a_b", true);
    }

    #[test]
    fn an_identity_is_for_a_node_in_a_role() {
        let identity = DevCa::new().unwrap().issue("decode-0", &[Role::Decode]).unwrap();
        assert!(identity.is_for("decode-0", Role::Decode));
        assert!(!identity.is_for("decode-1", Role::Decode));
        assert!(!identity.is_for("decode-0", Role::Prefill));
    }

    #[test]
    fn garbage_names_nothing() {
        assert!(!certified(&vec![1, 2, 3].into(), &server_name(Role::Gateway)));
    }
}
