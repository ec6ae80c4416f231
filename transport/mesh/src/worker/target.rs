//! Where gateways are: addresses, or a name that stands for several.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use tokio::time::timeout;

/// Where one or more gateways are.
#[derive(Clone, Eq, PartialEq, Ord, PartialOrd, Debug)]
pub enum Target {
    /// One gateway.
    Address(SocketAddr),
    /// A host name and a port; every address of the name is a gateway. Looked up again and again, so that gateways can
    /// come and go.
    Name(String),
}

/// Text that is neither an address nor a name with a port.
#[derive(Clone, Eq, PartialEq, Debug, thiserror::Error)]
#[error("`{0}` is not the address of a gateway; it must be HOST:PORT")]
pub struct BadTarget(String);

impl FromStr for Target {
    type Err = BadTarget;

    fn from_str(text: &str) -> Result<Self, BadTarget> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        let bad = || BadTarget(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
        let named = !host.is_empty() && !host.contains([':', '/', '[', ']', ' ']);
        if named && port.parse::<u16>().is_ok_and(|port| port > 0) {
            Ok(Self::Name(text.to_owned()))
        } else {
            Err(bad())
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl Target {
    /// The address, if it is one.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Name(_) => None,
        }
    }

    /// Its addresses of the family that can be dialled: a gateway that has one of each is dialled once.
    pub(super) async fn resolve(
        &self,
        ipv6: bool,
        deadline: Duration,
    ) -> Result<BTreeSet<SocketAddr>, String> {
        let name = match self {
            Self::Address(address) => return Ok(BTreeSet::from([*address])),
            Self::Name(name) => name,
        };
        let found = match timeout(deadline, tokio::net::lookup_host(name)).await {
            Ok(found) => found.map_err(|error| error.to_string())?,
            Err(_) => return Err(format!("no answer in {} ms", deadline.as_millis())),
        };
        let fitting: BTreeSet<SocketAddr> = found.filter(|address| address.is_ipv6() == ipv6).collect();
        if fitting.is_empty() {
            let family = if ipv6 { "IPv6" } else { "IPv4" };
            return Err(format!("the name has no {family} address"));
        }
        Ok(fitting)
    }
}

#[cfg(test)]
mod tests {
    use super::Target;

    fn check(text: &str, expected: Option<&str>) {
        let got = text.parse::<Target>().ok().map(|target| format!("{target:?}"));
        assert_eq!(got.as_deref(), expected, "{text}");
    }

    #[test]
    fn targets_are_addresses_or_names_with_a_port() {
        check("127.0.0.1:7000", Some("Address(127.0.0.1:7000)"));
        check("[::1]:7000", Some("Address([::1]:7000)"));
        check(
            "gateways.innkeeper.svc:7000",
            Some("Name(\"gateways.innkeeper.svc:7000\")"),
        );
        check("localhost", None);
        check("localhost:", None);
        check("localhost:0", None);
        check("localhost:99999", None);
        check("http://localhost:7000", None);
        check(":7000", None);
    }
}
