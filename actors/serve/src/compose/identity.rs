//! Certificates: from files where there are any, else made by the development authorities in the cache folder.

use std::fs;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use api::Tls;
use mesh::{DevCa, Identity, IdentityFiles};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use wire::Role;

use crate::config::Config;
use crate::paths;
use crate::renewal::Files;

/// The files that say who this process is to other nodes; none if it is of the development authority.
pub(crate) fn node_files(config: &Config) -> Option<Files> {
    let folder = Some(&config.mesh.certs).filter(|folder| !folder.is_empty())?;
    let IdentityFiles { cert, key, ca } = IdentityFiles::in_folder(Path::new(folder));
    Some(Files::look(vec![cert, key, ca]))
}

const HOUR: Duration = Duration::from_secs(3_600);

/// Who this process is to other nodes.
pub(crate) fn node(config: &Config, name: &str, role: Role) -> Result<Identity> {
    if !config.mesh.certs.is_empty() {
        let files = IdentityFiles::in_folder(Path::new(&config.mesh.certs));
        let identity = files.load().context("mesh.certs")?;
        // Every peer would refuse it.
        ensure!(
            identity.is_for(name, role),
            "mesh.certs: the certificate in {} is not one for {name} as {role}: it needs the DNS names {role}.innkeeper and \
             {name}.node.innkeeper (or *.node.innkeeper)",
            files.cert.display()
        );
        return Ok(identity);
    }
    let ca = DevCa::open_or_create(&paths::dev_ca(config)?).context("the development authority")?;
    ca.issue(name, &[role]).context("the development authority")
}

/// The files of the certificate that clients see; none if it is of the development authority.
pub(crate) fn web_files(config: &Config) -> Option<Files> {
    let (cert, key) = (&config.api.cert, &config.api.key);
    (!cert.is_empty()).then(|| Files::look(vec![cert.into(), key.into()]))
}

/// Shows clients what is in the files now.
pub(crate) fn renew_web(config: &Config, shown: &Tls) -> Result<()> {
    let (cert, key) = read_web(config)?;
    shown.renew(&cert, &key).context("api.cert and api.key")
}

fn read_web(config: &Config) -> Result<(Vec<u8>, Vec<u8>)> {
    let read = |key, path: &str| fs::read(path).with_context(|| format!("{key}: cannot read {path}"));
    Ok((
        read("api.cert", &config.api.cert)?,
        read("api.key", &config.api.key)?,
    ))
}

/// The certificate that clients see.
pub(crate) fn web(config: &Config) -> Result<Tls> {
    let api = &config.api;
    ensure!(
        api.cert.is_empty() == api.key.is_empty(),
        "api.cert and api.key go together: give both or neither"
    );
    if api.cert.is_empty() {
        let folder = paths::web_ca(config)?;
        return development(&folder, api.https.ip()).with_context(|| {
            format!(
                "the development authority for clients in {} (api.cert and api.key do without it)",
                folder.display()
            )
        });
    }
    let (cert, key) = read_web(config)?;
    Tls::from_pem(&cert, &key).context("api.cert and api.key")
}

/// A certificate for this machine, made anew at every start: the address may be another one.
fn development(folder: &Path, address: IpAddr) -> Result<Tls> {
    let mut hosts = vec!["localhost".to_owned()];
    hosts.extend([Ipv4Addr::LOCALHOST.to_string(), Ipv6Addr::LOCALHOST.to_string()]);
    if !address.is_unspecified() && !address.is_loopback() {
        hosts.push(address.to_string());
    }
    let made = issue_web(folder, &hosts, None)?;
    Ok(Tls::from_pem(made.cert.as_bytes(), made.key.as_bytes())?)
}

/// A certificate that clients see, its key, and the authority that vouches for it, in PEM.
pub(crate) struct Web {
    pub(crate) cert: String,
    pub(crate) key: String,
    pub(crate) ca: String,
}

/// A certificate for these names and addresses, by the authority in `folder`, which is made if there is none; good for so many days from
/// now, or without an end. P-256, which every client knows.
pub(crate) fn issue_web(folder: &Path, hosts: &[String], days: Option<u32>) -> Result<Web> {
    let issuer = open_web(folder)?;
    let key = KeyPair::generate()?;
    // What is an address becomes one.
    let mut leaf = CertificateParams::new(hosts)?;
    leaf.distinguished_name.push(DnType::CommonName, "innkeeper");
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    if let Some(days) = days {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let now = rcgen::date_time_ymd(1970, 1, 1) + now;
        // Clocks differ.
        leaf.not_before = now - HOUR;
        leaf.not_after = now + 24 * HOUR * days;
    }
    let cert = leaf.signed_by(&key, &issuer)?;
    Ok(Web {
        cert: cert.pem(),
        key: key.serialize_pem(),
        ca: fs::read_to_string(folder.join("ca.crt"))?,
    })
}

/// The authority in `folder`, made if there is none. Several processes may do this at a time: all get the same one.
fn open_web(folder: &Path) -> Result<Issuer<'static, KeyPair>> {
    let (cert, key) = (folder.join("ca.crt"), folder.join("ca.key"));
    if !key.exists() {
        make_web(folder)?;
    }
    let read =
        |path: &Path| fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
    let key = KeyPair::from_pem(&read(&key)?)?;
    Ok(Issuer::from_ca_cert_pem(&read(&cert)?, key)?)
}

/// Puts an authority into `folder`, all of it or nothing, unless another process was quicker.
fn make_web(folder: &Path) -> Result<()> {
    let key = KeyPair::generate()?;
    let mut ca = CertificateParams::new(Vec::new())?;
    ca.distinguished_name
        .push(DnType::CommonName, "Innkeeper development authority for clients");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let cert = ca.self_signed(&key)?;

    let partial = folder.with_extension(format!("{}-{}", std::process::id(), rand::random::<u32>()));
    let made = put(&partial, folder, &cert.pem(), &key.serialize_pem());
    if made.is_err() {
        // Half a folder is of no use, and the disk may be full.
        let _ = fs::remove_dir_all(&partial);
    }
    Ok(made?)
}

/// Writes both files to `partial`, which then becomes `folder`, unless that has been made meanwhile.
fn put(partial: &Path, folder: &Path, cert: &str, key: &str) -> std::io::Result<()> {
    fs::create_dir_all(partial)?;
    fs::write(partial.join("ca.crt"), cert)?;
    write_secret(&partial.join("ca.key"), key)?;
    // Without a key it is of no use to anybody.
    if folder.exists() && !folder.join("ca.key").exists() {
        fs::remove_dir_all(folder)?;
    }
    match fs::rename(partial, folder) {
        Err(_) if folder.join("ca.key").exists() => fs::remove_dir_all(partial),
        renamed => renamed,
    }
}

/// Writes a file that is its owner's alone, and was not there.
pub(crate) fn write_secret(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn all_who_start_at_once_have_one_authority_for_clients() {
        let cache = tempfile::tempdir().expect("a folder");
        let folder = cache.path().join("dev-ca").join("web");
        // What an earlier version left is replaced.
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("tls.crt"), "old").expect("written");
        make_web(&folder).expect("made");
        assert!(!folder.join("tls.crt").exists());
        fs::remove_dir_all(&folder).expect("removed");

        let start = Barrier::new(8);
        let open = || {
            start.wait();
            open_web(&folder).expect("opened").key().serialize_pem()
        };
        let keys = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("ends"))
                .collect::<Vec<_>>()
        });
        let kept = fs::read_to_string(folder.join("ca.key")).expect("a key");
        assert!(keys.iter().all(|key| *key == kept), "{keys:?}");
        let left = fs::read_dir(cache.path().join("dev-ca"))
            .expect("a folder")
            .count();
        assert_eq!(left, 1, "nothing partial is left");
    }

    #[test]
    fn a_certificate_is_issued_for_any_address() {
        let cache = tempfile::tempdir().expect("a folder");
        for address in ["127.0.0.1", "0.0.0.0", "10.1.2.3", "::1"] {
            let folder = cache.path().join("web");
            development(&folder, address.parse().expect("an address")).expect(address);
        }
    }
}
