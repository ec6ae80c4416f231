//! An authority for development: `up` makes one, so that a cluster on one machine has the same locks as any other.

use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ED25519,
};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use wire::Role;

use crate::identity::files::{write_first, write_whole};
use crate::identity::{Identity, IdentityError, IdentityFiles, node_name, server_name};

/// An authority that makes identities. Its keys and theirs are Ed25519: signatures of one length, so that packet traces
/// can repeat.
#[derive(Debug)]
pub struct DevCa {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// One node's, in PEM.
struct Issued {
    cert: String,
    key: String,
    identity: Identity,
}

impl DevCa {
    /// A new one, in memory.
    ///
    /// # Errors
    /// If the machine gives no random numbers.
    pub fn new() -> Result<Self, IdentityError> {
        let key = KeyPair::generate_for(&PKCS_ED25519)?;
        let mut params = CertificateParams::new(Vec::new())?;
        params
            .distinguished_name
            .push(DnType::CommonName, "Innkeeper development authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let pem = params.self_signed(&key)?.pem();
        Ok(Self {
            issuer: Issuer::new(params, key),
            pem,
        })
    }

    /// The one that is kept in `folder` (as `dev-ca.pem`, certificate and key), which is made if there is none. Several
    /// processes may do this at a time: all get the same one.
    ///
    /// # Errors
    /// If the folder cannot be written to, or holds something else under that name.
    pub fn open_or_create(folder: &Path) -> Result<Self, IdentityError> {
        let path = folder.join("dev-ca.pem");
        if !path.exists() {
            std::fs::create_dir_all(folder).map_err(|error| IdentityError::File {
                path: folder.to_owned(),
                error,
            })?;
            let new = Self::new()?;
            write_first(&path, &(new.pem.clone() + &new.issuer.key().serialize_pem()))?;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| IdentityError::File { path, error })?;
        let key = KeyPair::from_pem(section(&text, "PRIVATE KEY"))?;
        let pem = section(&text, "CERTIFICATE").to_owned();
        Ok(Self {
            issuer: Issuer::from_ca_cert_pem(&pem, key)?,
            pem,
        })
    }

    /// An identity for a node of this name (`*`: of any) and these roles.
    ///
    /// # Errors
    /// If the name is not one of ASCII letters, or the machine gives no random numbers.
    pub fn issue(&self, node: &str, roles: &[Role]) -> Result<Identity, IdentityError> {
        Ok(self.make(node, roles)?.identity)
    }

    /// As [`DevCa::issue`], and keeps it in `folder` under the usual names.
    ///
    /// # Errors
    /// As there, and if the folder cannot be written to.
    pub fn issue_to(
        &self,
        folder: &Path,
        node: &str,
        roles: &[Role],
    ) -> Result<IdentityFiles, IdentityError> {
        std::fs::create_dir_all(folder).map_err(|error| IdentityError::File {
            path: folder.to_owned(),
            error,
        })?;
        let files = IdentityFiles::in_folder(folder);
        let issued = self.make(node, roles)?;
        write_whole(&files.key, &issued.key, true)?;
        write_whole(&files.cert, &issued.cert, false)?;
        write_whole(&files.ca, &self.pem, false)?;
        Ok(files)
    }

    fn make(&self, node: &str, roles: &[Role]) -> Result<Issued, IdentityError> {
        let key = KeyPair::generate_for(&PKCS_ED25519)?;
        let mut names: Vec<String> = roles.iter().map(|role| server_name(*role)).collect();
        names.push(node_name(node));
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, node);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let cert = params.signed_by(&key, &self.issuer)?;
        let root = rustls_pki_types::pem::PemObject::from_pem_slice(self.pem.as_bytes());
        let roots: Vec<_> = root.into_iter().collect();
        let identity = Identity {
            chain: vec![cert.der().clone()],
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            roots,
        };
        Ok(Issued {
            cert: cert.pem(),
            key: key.serialize_pem(),
            identity,
        })
    }
}

/// The part of a PEM text with this label, or nothing.
fn section<'a>(text: &'a str, label: &str) -> &'a str {
    let (begin, end) = (
        format!("-----BEGIN {label}-----"),
        format!("-----END {label}-----"),
    );
    let from = text.find(&begin);
    let to = text.find(&end).map(|at| at + end.len());
    from.zip(to)
        .and_then(|(from, to)| text.get(from..to))
        .unwrap_or_default()
}
