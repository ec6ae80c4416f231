//! A whole cluster moves from one authority to another while it serves: no process is restarted, no answer fails.

use std::fs;
use std::path::{Path, PathBuf};

use integration_tests::{Cluster, Stream, answer, completion};
use mesh::DevCa;
use wire::Role;

/// Where the nodes keep their certificates.
struct Folders(PathBuf);

impl Folders {
    fn of(&self, node: &str) -> PathBuf {
        self.0.join(node)
    }

    /// Setting that names it.
    fn set(&self, node: &str) -> String {
        format!("mesh.certs={}", self.of(node).display())
    }

    /// Gives the node a certificate of this authority. It believes those that it believed, too.
    fn renew(&self, node: &str, role: Role, authority: &DevCa) {
        let believed = fs::read_to_string(self.of(node).join("ca.crt")).unwrap_or_default();
        let files = authority.issue_to(&self.of(node), "*", &[role]).unwrap();
        let own = fs::read_to_string(&files.ca).unwrap();
        fs::write(&files.ca, own + &believed).unwrap();
    }

    /// The node believes whom this one believes, and nobody else.
    fn believes(&self, node: &str, as_that: &str) {
        fs::copy(self.of(as_that).join("ca.crt"), self.of(node).join("ca.crt")).unwrap();
    }
}

const NODES: [(&str, Role); 3] = [
    ("gateway-0", Role::Gateway),
    ("prefill-0", Role::Prefill),
    ("decode-0", Role::Decode),
];

fn folders(cluster: &Cluster) -> Folders {
    let folder: &Path = cluster.folder();
    Folders(folder.join("certificates"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_changes_its_authority_while_it_serves() {
    let mut cluster = Cluster::new(&[]).await;
    let folders = folders(&cluster);
    let (old, new) = (DevCa::new().unwrap(), DevCa::new().unwrap());
    for (node, role) in NODES {
        folders.renew(node, role, &old);
    }
    cluster.start_gateway(&[&folders.set("gateway-0")]);
    cluster.start_worker("prefill", "prefill-0", &[&folders.set("prefill-0")]);
    cluster.start_worker("decode", "decode-0", &[&folders.set("decode-0")]);
    cluster.ready(2).await;
    let request = completion("Who keeps the keys of an inn?", 400, 0.0, 0);
    let mut stream = Stream::open(cluster.ports().http, &request).await.unwrap();
    stream.read_tokens(3).await.unwrap();

    // Of the new authority, and believes it alone. Until the gateway is, too, it is linked with nobody.
    folders.renew("decode-1", Role::Decode, &new);
    cluster.start_worker("decode", "decode-1", &[&folders.set("decode-1")]);
    for (node, role) in NODES {
        folders.renew(node, role, &new);
    }
    cluster.ready(3).await;
    // What was linked before still is.
    let told = answer(cluster.ports().http, &completion("And who else?", 4, 0.0, 0)).await;
    assert_eq!(told.status, 200, "{told:?}");

    // The old one is forgotten: a certificate of it is worth nothing any more.
    for (node, _) in NODES {
        folders.believes(node, "decode-1");
    }
    cluster
        .process("decode-1")
        .signal(integration_tests::Signal::Kill);
    cluster.ready(2).await;
    folders.renew("decode-2", Role::Decode, &old);
    folders.renew("decode-3", Role::Decode, &new);
    cluster.start_worker("decode", "decode-2", &[&folders.set("decode-2")]);
    cluster.start_worker("decode", "decode-3", &[&folders.set("decode-3")]);
    let is_linked = async || {
        let workers = cluster.workers().await;
        workers
            .iter()
            .any(|worker| worker.name == "decode-3")
            .then_some(workers)
    };
    let (workers, _) = cluster.until("decode-3 is linked", is_linked).await;
    assert!(
        workers.iter().all(|worker| worker.name != "decode-2"),
        "{workers:?}"
    );

    let told = stream.finish().await.unwrap();
    assert_eq!((told.status, told.tokens.len()), (200, 400), "{told:?}");
}
