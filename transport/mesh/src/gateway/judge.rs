//! Whether a hello is accepted.

use wire::{Hello, MIN_VERSION, Role, VERSION, agree_version};

use crate::identity::{node_name, server_name};

/// The version to speak, or why not to speak at all. `certified` tells whether the worker's certificate has a DNS name.
pub(super) fn judge(
    hello: &Hello,
    certified: impl Fn(&str) -> bool,
    accept: impl Fn(&Hello) -> Result<(), String>,
) -> Result<u16, String> {
    let theirs = (hello.min_version, hello.max_version);
    let version = agree_version((MIN_VERSION, VERSION), theirs).ok_or_else(|| {
        format!(
            "the worker speaks versions {} to {}, this gateway {MIN_VERSION} to {VERSION}",
            theirs.0, theirs.1
        )
    })?;
    if hello.role == Role::Gateway {
        return Err("a gateway does not link to a gateway".to_owned());
    }
    for (what, name) in [
        ("role", server_name(hello.role)),
        ("node", node_name(&hello.node)),
    ] {
        if !certified(&name) {
            return Err(format!(
                "the certificate does not name the {what}: `{name}` must be among its DNS names"
            ));
        }
    }
    accept(hello)?;
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::judge;
    use wire::{Hello, Role};

    fn hello(role: Role, versions: (u16, u16)) -> Hello {
        Hello {
            min_version: versions.0,
            max_version: versions.1,
            node: "w".into(),
            epoch: 1,
            role,
            model: "m".into(),
            layout_hash: 7,
            block_tokens: 16,
            blocks: 1,
            slots: 1,
            context_tokens: 64,
            kv_address: Vec::new(),
            numerics: String::new(),
            faults: false,
        }
    }

    fn check(hello: &Hello, expected: Result<u16, &str>) {
        let fits = |hello: &Hello| {
            if hello.layout_hash == 7 {
                Ok(())
            } else {
                Err("another layout".to_owned())
            }
        };
        let names = ["decode.innkeeper", "gateway.innkeeper", "w.node.innkeeper"];
        let got = judge(hello, |name| names.contains(&name), fits);
        match expected {
            Ok(version) => assert_eq!(got, Ok(version)),
            Err(part) => assert!(
                got.clone().is_err_and(|why| why.contains(part)),
                "{got:?} lacks {part:?}"
            ),
        }
    }

    #[test]
    fn every_reason_is_told() {
        const V: u16 = wire::VERSION;
        check(&hello(Role::Decode, (V, V)), Ok(V));
        check(&hello(Role::Decode, (0, V + 9)), Ok(V));
        let newer = format!(
            "versions {} to {}, this gateway {} to {V}",
            V + 1,
            V + 2,
            wire::MIN_VERSION
        );
        check(&hello(Role::Decode, (V + 1, V + 2)), Err(&newer));
        check(&hello(Role::Prefill, (V, V)), Err("`prefill.innkeeper` must be"));
        check(&hello(Role::Gateway, (V, V)), Err("does not link to a gateway"));
        check(
            &Hello {
                node: "v".into(),
                ..hello(Role::Decode, (V, V))
            },
            Err("`v.node.innkeeper` must be"),
        );
        check(
            &Hello {
                layout_hash: 8,
                ..hello(Role::Decode, (V, V))
            },
            Err("another layout"),
        );
    }
}
