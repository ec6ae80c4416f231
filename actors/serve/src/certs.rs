//! `innkeeper certs`: the authorities and certificates of a cluster of several machines, as files and as Kubernetes' Secrets.
//!
//! ```text
//!   FOLDER/authority/nodes    signs the nodes' certificates   ┐ never leave the folder
//!   FOLDER/authority/clients  signs the certificate of doors  ┘
//!   FOLDER/mesh-ROLE          tls.crt, tls.key, ca.crt: for mesh.certs, one a role
//!   FOLDER/mesh-worker        the same, for workers in any role, if it is wanted
//!   FOLDER/web                tls.crt, tls.key: for api.cert and api.key; ca.crt: for clients
//! ```

use std::fmt::Write;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use mesh::DevCa;
use wire::Role;

use crate::cli::CertsArgs;
use crate::compose::{issue_web, write_secret};
use crate::output;

/// What a folder of a certificate holds, and a Secret of the kind `kubernetes.io/tls`.
const FILES: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

/// The certificate for workers in any role.
const WORKER: &str = "mesh-worker";

/// Makes them, and prints what was made.
pub(crate) fn make(args: &CertsArgs) -> Result<()> {
    let made = issue(&args.folder, &args.hosts, args.days, args.any_role)
        .with_context(|| format!("certificates in {}", args.folder.display()))?;
    let text = match args.kubernetes {
        true => {
            // The roles that deploy/base has.
            let used = made.iter().filter(|name| *name != "mesh-mixed");
            let secrets: Result<Vec<String>> = used.map(|name| secret(&args.folder, name)).collect();
            secrets?.join("---\n")
        }
        false => {
            let path = |name: &String| format!("{}\n", args.folder.join(name).display());
            made.iter().map(path).collect()
        }
    };
    Ok(output::print(&text)?)
}

/// Makes new certificates of the authorities in this folder, which are made if there are none; gives the names of their folders.
fn issue(folder: &Path, hosts: &[String], days: u32, any_role: bool) -> Result<Vec<String>> {
    hosts.iter().try_for_each(|host| check_host(host))?;
    let authority = folder.join("authority");
    let nodes = DevCa::open_or_create(&authority.join("nodes"))?;
    let mut made = Vec::new();
    for role in Role::ALL {
        let name = format!("mesh-{}", role.name());
        // Of any name: the pods of a role share it. A stolen one of prefill is none of decode.
        nodes.issue_to(&folder.join(&name), "*", &[role])?;
        made.push(name);
    }
    if any_role {
        nodes.issue_to(
            &folder.join(WORKER),
            "*",
            &[Role::Prefill, Role::Decode, Role::Mixed],
        )?;
        made.push(WORKER.to_owned());
    }
    let web = issue_web(&authority.join("clients"), hosts, Some(days))?;
    let into = folder.join("web");
    fs::create_dir_all(&into)?;
    // Until both are there, they do not fit: nobody looks into this folder meanwhile.
    replace_secret(&into.join("tls.key"), &web.key)?;
    fs::write(into.join("tls.crt"), &web.cert)?;
    fs::write(into.join("ca.crt"), &web.ca)?;
    made.push("web".to_owned());
    Ok(made)
}

fn check_host(host: &str) -> Result<()> {
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._*".contains(&byte);
    let is_name = !host.is_empty() && host.bytes().all(in_name);
    ensure!(
        is_name || host.parse::<IpAddr>().is_ok(),
        "--for {host}: write a name or an address, such as llm.example.com or 10.1.2.3"
    );
    Ok(())
}

fn replace_secret(path: &Path, text: &str) -> std::io::Result<()> {
    if path.exists() {
        fs::remove_file(path)?;
    }
    write_secret(path, text)
}

/// A Secret with what is in this folder.
fn secret(folder: &Path, name: &str) -> Result<String> {
    let mut yaml = format!(
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: innkeeper-{name}\ntype: kubernetes.io/tls\nstringData:\n"
    );
    for file in FILES {
        let path = folder.join(name).join(file);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        // Writing to a String does not fail.
        let _ = writeln!(yaml, "  {file}: |");
        for line in text.lines() {
            let _ = writeln!(yaml, "    {line}");
        }
    }
    Ok(yaml)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use api::Tls;
    use mesh::IdentityFiles;

    use super::*;

    fn read(folder: &Path, path: &str) -> String {
        fs::read_to_string(folder.join(path)).expect(path)
    }

    #[test]
    fn a_cluster_gets_what_it_needs_and_later_the_same_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let hosts = ["llm.example.com".to_owned(), "10.1.2.3".to_owned()];
        let made = issue(folder, &hosts, 30, false).expect("made");
        assert_eq!(
            made,
            ["mesh-gateway", "mesh-prefill", "mesh-decode", "mesh-mixed", "web"]
        );
        for name in &made[..4] {
            let files = IdentityFiles::in_folder(&folder.join(name));
            assert_eq!(files.load().expect(name).roots.len(), 1);
        }
        let web = (read(folder, "web/tls.crt"), read(folder, "web/tls.key"));
        Tls::from_pem(web.0.as_bytes(), web.1.as_bytes()).expect("a certificate and its key");
        for key in [
            "web/tls.key",
            "mesh-decode/tls.key",
            "authority/nodes/dev-ca.pem",
            "authority/clients/ca.key",
        ] {
            let mode = fs::metadata(folder.join(key)).expect(key).permissions().mode();
            assert_eq!(mode & 0o077, 0, "{key} is its owner's alone");
        }

        let authorities = ["web/ca.crt", "mesh-gateway/ca.crt"].map(|path| read(folder, path));
        issue(folder, &hosts, 30, false).expect("made anew");
        assert_eq!(
            ["web/ca.crt", "mesh-gateway/ca.crt"].map(|path| read(folder, path)),
            authorities
        );
        assert_ne!(read(folder, "web/tls.crt"), web.0);
    }

    #[test]
    fn a_worker_whose_role_changes_has_a_certificate_for_all_of_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let made = issue(folder.path(), &["localhost".to_owned()], 1, true).expect("made");
        assert!(made.iter().any(|name| name == WORKER), "{made:?}");
        let files = IdentityFiles::in_folder(&folder.path().join(WORKER));
        let identity = files.load().expect("an identity");
        for role in Role::ALL {
            let expected = role != Role::Gateway;
            assert_eq!(identity.is_for("prefill-0", role), expected, "{role}");
        }
    }

    #[test]
    fn a_secret_has_all_of_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        issue(folder, &["localhost".to_owned()], 1, false).expect("made");
        let yaml = secret(folder, "mesh-prefill").expect("read");
        assert!(
            yaml.contains("\n  name: innkeeper-mesh-prefill\ntype: kubernetes.io/tls\n"),
            "{yaml}"
        );
        for file in FILES {
            let text = read(folder, &format!("mesh-prefill/{file}"));
            let indented: String = text.lines().map(|line| format!("    {line}\n")).collect();
            assert!(
                yaml.contains(&format!("  {file}: |\n{indented}")),
                "{file} in {yaml}"
            );
        }
    }
}
