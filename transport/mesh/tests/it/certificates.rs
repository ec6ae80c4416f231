//! Identities in files.

use std::path::Path;

use mesh::{DevCa, Identity, IdentityError, IdentityFiles};
use wire::Role;

use crate::nodes::{World, config, gateway_address, hello, worker_address};

fn issue(folder: &Path, name: &str, role: Role) -> Identity {
    let ca = DevCa::open_or_create(folder).unwrap();
    ca.issue_to(&folder.join(name), name, &[role])
        .unwrap()
        .load()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn one_folder_makes_one_authority_whoever_opens_it() {
    let folder = tempfile::tempdir().unwrap();
    // As two processes would, each with its own opening of the folder.
    let (gateway, worker) = (
        issue(folder.path(), "gateway", Role::Gateway),
        issue(folder.path(), "worker", Role::Decode),
    );
    assert_eq!(gateway.roots, worker.roots);
    let world = World::new();
    let mut gateway = world.gateway_as(&gateway, 1, config());
    let _worker = world.worker_as(&worker, worker_address(), hello("worker", 1), config());
    gateway.heard.up().await;
    assert_eq!(gateway.listener.local_addr().unwrap(), gateway_address());
}

#[test]
fn many_at_a_time_get_the_same_authority() {
    let folder = tempfile::tempdir().unwrap();
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let folder = folder.path().to_owned();
            std::thread::spawn(move || {
                DevCa::open_or_create(&folder)
                    .unwrap()
                    .issue("n", &[])
                    .unwrap()
                    .roots
            })
        })
        .collect();
    let roots: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(roots.iter().all(|root| *root == roots[0]));
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        1,
        "nothing half-made is left"
    );
}

#[cfg(unix)]
#[test]
fn keys_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    issue(folder.path(), "n", Role::Decode);
    for file in ["dev-ca.pem", "n/tls.key"] {
        let mode = std::fs::metadata(folder.path().join(file))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{file} is {mode:o}");
    }
}

/// The error names the file.
fn check_unreadable(spoil: impl FnOnce(&IdentityFiles), expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let files = DevCa::new()
        .unwrap()
        .issue_to(folder.path(), "n", &[Role::Decode])
        .unwrap();
    files.load().unwrap();
    spoil(&files);
    let error: IdentityError = files.load().unwrap_err();
    assert!(error.to_string().contains(expected), "{error} lacks {expected}");
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    check_unreadable(|files| std::fs::remove_file(&files.ca).unwrap(), "ca.crt");
    check_unreadable(|files| std::fs::write(&files.key, "no key").unwrap(), "tls.key");
    check_unreadable(
        |files| std::fs::write(&files.cert, "").unwrap(),
        "no certificate in it",
    );
}

#[test]
fn a_spoilt_authority_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("dev-ca.pem"), "spoilt").unwrap();
    assert!(DevCa::open_or_create(folder.path()).is_err());
    assert_eq!(
        std::fs::read_to_string(folder.path().join("dev-ca.pem")).unwrap(),
        "spoilt"
    );
}
