#!/usr/bin/env python3
"""Makes an image of a root file system, without a daemon, without root, and the same one of the same files.

    oci.py ROOTFS ARCHIVE NAME:TAG [--arch ARCHITECTURE]

The archive is an OCI layout, and docker's format as well: `docker load -i`, `podman load -i`, `ctr images import` and `skopeo copy
oci-archive:` take it.
"""
import argparse
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile

USER = "65532:65532"


def layer(root):
    """A tar of the folder whose bytes follow from its files alone."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for folder, folders, files in os.walk(root):
            folders.sort()
            for name in sorted(files + folders):
                path = os.path.join(folder, name)
                info = tar.gettarinfo(path, os.path.relpath(path, root))
                info.uid = info.gid = 65532 if info.name == "cache" else 0
                info.uname = info.gname = ""
                info.mtime = 0
                if info.isreg():
                    with open(path, "rb") as file:
                        tar.addfile(info, file)
                else:
                    tar.addfile(info)
    return out.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root")
    parser.add_argument("archive")
    parser.add_argument("name")
    parser.add_argument("--arch", default="amd64")
    args = parser.parse_args()

    blobs = {}

    def put(data, media):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(data)}

    plain = layer(args.root)
    diff = "sha256:" + hashlib.sha256(plain).hexdigest()
    # No time of its own in the header.
    packed = gzip.compress(plain, compresslevel=1, mtime=0)
    config = {
        "architecture": args.arch,
        "os": "linux",
        "config": {
            "User": USER,
            "Entrypoint": ["/usr/bin/innkeeper"],
            "Env": ["PATH=/usr/bin", "HOME=/cache", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],
            "StopSignal": "SIGTERM",
            "Labels": {"org.opencontainers.image.title": "innkeeper", "org.opencontainers.image.licenses": "Apache-2.0"},
        },
        "rootfs": {"type": "layers", "diff_ids": [diff]},
        "history": [{"created_by": "deploy/image/rootfs"}],
    }
    layers = [put(packed, "application/vnd.oci.image.layer.v1.tar+gzip")]
    image = put(json.dumps(config, sort_keys=True).encode(), "application/vnd.oci.image.config.v1+json")
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": image, "layers": layers}
    entry = put(json.dumps(manifest, sort_keys=True).encode(), manifest["mediaType"])
    entry["annotations"] = {"io.containerd.image.name": args.name, "org.opencontainers.image.ref.name": args.name.rsplit(":", 1)[1]}
    files = {f"blobs/sha256/{digest}": data for digest, data in blobs.items()}
    files["oci-layout"] = b'{"imageLayoutVersion":"1.0.0"}'
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [entry]}, sort_keys=True).encode()
    blob = lambda of: "blobs/sha256/" + of["digest"].split(":")[1]
    files["manifest.json"] = json.dumps([{"Config": blob(image), "RepoTags": [args.name], "Layers": [blob(layers[0])]}]).encode()
    with tarfile.open(args.archive, "w") as tar:
        for name, data in sorted(files.items()):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    print(f"{args.archive}: {args.name} {entry['digest']}, {len(plain) >> 20} MiB, {len(packed) >> 20} MiB packed")


if __name__ == "__main__":
    sys.exit(main())
