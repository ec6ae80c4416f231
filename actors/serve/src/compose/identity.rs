//! Certificates: from files where there are any, else made by the development authority in the cache folder.

use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use api::Tls;
use mesh::{DevCa, Identity, IdentityFiles};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};
use wire::Role;

use crate::config::Config;
use crate::paths;

/// Who this process is to other nodes.
pub(crate) fn node(config: &Config, name: &str, role: Role) -> Result<Identity> {
    let folder = paths::certs(config)?;
    if !config.mesh.certs.is_empty() {
        return IdentityFiles::in_folder(&folder).load().context("mesh.certs");
    }
    let ca = DevCa::open_or_create(&folder).context("the development authority")?;
    ca.issue(name, &[role]).context("the development authority")
}

/// The certificate that clients see.
pub(crate) fn web(config: &Config) -> Result<Tls> {
    let api = &config.api;
    ensure!(
        api.cert.is_empty() == api.key.is_empty(),
        "api.cert and api.key go together: give both or neither"
    );
    let folder = paths::certs(config)?.join("web");
    let (cert, key) = if api.cert.is_empty() {
        make_web(config, &folder)
            .with_context(|| format!("a certificate for clients in {}", folder.display()))?;
        (folder.join("tls.crt"), folder.join("tls.key"))
    } else {
        (api.cert.clone().into(), api.key.clone().into())
    };
    let read = |path: &Path| std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    Tls::from_pem(&read(&cert)?, &read(&key)?).with_context(|| format!("{}", cert.display()))
}

/// Makes an authority and a certificate for this machine, unless they are there. P-256, which every client knows.
fn make_web(config: &Config, folder: &Path) -> Result<()> {
    if folder.join("tls.crt").exists() {
        return Ok(());
    }
    std::fs::create_dir_all(folder)?;
    let ca_key = KeyPair::generate()?;
    let mut ca = CertificateParams::new(Vec::new())?;
    ca.distinguished_name
        .push(DnType::CommonName, "Innkeeper development authority for clients");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let ca_cert = ca.self_signed(&ca_key)?;
    let issuer = Issuer::new(ca, ca_key);

    let key = KeyPair::generate()?;
    let mut leaf = CertificateParams::new(vec!["localhost".to_owned()])?;
    leaf.distinguished_name.push(DnType::CommonName, "innkeeper");
    let mut addresses: Vec<IpAddr> = vec![[127, 0, 0, 1].into(), std::net::Ipv6Addr::LOCALHOST.into()];
    addresses.extend(Some(config.api.https.ip()).filter(|ip| !ip.is_unspecified() && !ip.is_loopback()));
    leaf.subject_alt_names
        .extend(addresses.into_iter().map(SanType::IpAddress));
    let cert = leaf.signed_by(&key, &issuer)?;

    std::fs::write(folder.join("ca.crt"), ca_cert.pem())?;
    write_secret(&folder.join("tls.key"), &key.serialize_pem())?;
    // Last: its presence says that the others are there.
    std::fs::write(folder.join("tls.crt"), cert.pem())?;
    Ok(())
}

fn write_secret(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())
}
