//! What a site chooses about UCX.

use std::net::{IpAddr, Ipv4Addr};

/// Shared memory where both workers are on one machine, tcp elsewhere.
const LOOPBACK_TLS: &str = "tcp,posix,sysv,cma,self";

/// Settings of one [`crate::UcxTransfer`]. The library itself is loaded before, by [`crate::Ucx::load`].
#[derive(Clone, Eq, PartialEq, Debug)]
pub struct UcxConfig {
    /// UCX transports, as in `UCX_TLS`: `"tcp"`, or `"shm"` for shared memory with tcp for connecting. None: what
    /// the environment says, else on loopback `"shm"`, else UCX's own choice.
    pub tls: Option<String>,
    /// Network devices, as in `UCX_NET_DEVICES`. None: what the environment says, else on loopback `"lo"`, else UCX's
    /// own choice (which may stripe one endpoint over several networks).
    pub net_devices: Option<String>,
    /// Where to listen, on a port of the system's choice. Readers on other machines must reach this address.
    pub bind: IpAddr,
    /// How long a read or a send may stay without progress before its connection is closed by force, in milliseconds;
    /// at least 10.
    pub no_progress_ms: u64,
}

impl Default for UcxConfig {
    fn default() -> Self {
        Self {
            tls: None,
            net_devices: None,
            bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
            no_progress_ms: 2_000,
        }
    }
}

impl UcxConfig {
    /// The transports to set, from the configuration or else from `env`, the value of `UCX_TLS`. Connecting goes by
    /// socket address, so a list of shared-memory transports alone gets tcp added; data then still takes shared
    /// memory.
    pub(crate) fn effective_tls(&self, env: Option<&str>) -> Option<String> {
        let given = self
            .tls
            .as_deref()
            .or(env)
            .map(str::trim)
            .filter(|tls| !tls.is_empty());
        match given {
            None if self.bind.is_loopback() => Some(LOOPBACK_TLS.into()),
            None => None,
            Some("shm" | "sm") => Some(LOOPBACK_TLS.into()),
            Some(tls) if tls.starts_with('^') => Some(tls.into()),
            Some(tls) => {
                let connects = |t: &str| {
                    !matches!(
                        t.trim(),
                        "posix" | "sysv" | "cma" | "xpmem" | "self" | "mm" | "shm" | "sm"
                    )
                };
                let add_tcp = !tls.split(',').any(connects);
                Some(if add_tcp { format!("{tls},tcp") } else { tls.into() })
            }
        }
    }

    /// The devices to set, from the configuration or else from `env`, the value of `UCX_NET_DEVICES`.
    pub(crate) fn effective_devices(&self, env: Option<&str>) -> Option<String> {
        let loopback = || self.bind.is_loopback().then_some("lo");
        self.net_devices
            .as_deref()
            .or(env)
            .or_else(loopback)
            .map(Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tls: Option<&str>, env: Option<&str>, want: &str) {
        let config = UcxConfig {
            tls: tls.map(Into::into),
            ..UcxConfig::default()
        };
        assert_eq!(config.effective_tls(env).as_deref(), Some(want));
    }

    #[test]
    fn shared_memory_alone_gets_tcp_to_connect_with() {
        check(None, None, LOOPBACK_TLS);
        check(Some("shm"), None, LOOPBACK_TLS);
        check(Some("tcp"), Some("posix"), "tcp");
        check(None, Some("posix,cma"), "posix,cma,tcp");
        check(None, Some("posix,rc"), "posix,rc");
        check(None, Some("all"), "all");
    }

    #[test]
    fn off_loopback_ucx_chooses() {
        let config = UcxConfig {
            bind: IpAddr::from([10, 0, 0, 1]),
            ..UcxConfig::default()
        };
        assert_eq!(
            (config.effective_tls(None), config.effective_devices(None)),
            (None, None)
        );
        assert_eq!(config.effective_devices(Some("eth0")).as_deref(), Some("eth0"));
    }
}
