//! Roles in certificates.

use rustls::client::verify_server_name;
use rustls::server::ParsedCertificate;
use rustls_pki_types::{CertificateDer, ServerName};
use wire::Role;

/// The DNS name that stands for a role.
pub(crate) fn server_name(role: Role) -> String {
    format!("{}.innkeeper", role.name())
}

/// Whether a certificate, which was verified already, names the role.
pub(crate) fn certified(certificate: &CertificateDer<'_>, role: Role) -> bool {
    let Ok(certificate) = ParsedCertificate::try_from(certificate) else {
        return false;
    };
    ServerName::try_from(server_name(role)).is_ok_and(|name| verify_server_name(&certificate, &name).is_ok())
}

#[cfg(test)]
mod tests {
    use super::certified;
    use crate::identity::DevCa;
    use wire::Role;

    fn check(named: &[Role]) {
        let identity = DevCa::new().unwrap().issue("a node", named).unwrap();
        for role in Role::ALL {
            assert_eq!(
                certified(&identity.chain[0], role),
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

    #[test]
    fn garbage_names_no_role() {
        assert!(!certified(&vec![1, 2, 3].into(), Role::Gateway));
    }
}
