//! Networks of a test's own: a network namespace for the gateway (the hub) and one for each worker, joined by two bridges in the hub. One
//! carries the links between nodes, the other the KV; each worker's cable to each can be pulled out.
//!
//! UCX tells its peers the addresses of its interfaces, and data goes straight between those: a proxy would not be in the path.
//! The test stays where it is; a [`door`](Net::door) leads from a port of the machine's to the same port in the hub. Everything ends with
//! the processes that hold the namespaces, and those end with this one.

mod door;
mod holder;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use door::Door;
use holder::Holder;

/// One of the two networks.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Lane {
    /// The links between gateways and workers.
    Control,
    /// KV.
    Data,
}

impl Lane {
    const BOTH: [Self; 2] = [Self::Control, Self::Data];

    /// Of the bridge in the hub, and of the interface in each namespace.
    fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Data => "data",
        }
    }

    fn address(self, host: u8) -> Ipv4Addr {
        match self {
            Self::Control => Ipv4Addr::new(10, 71, 0, host),
            Self::Data => Ipv4Addr::new(10, 72, 0, host),
        }
    }
}

/// The hub's place on a lane; namespaces follow behind it.
const HUB: u8 = 1;

/// A hub, its namespaces and its doors.
pub struct Net {
    // First: a door's thread is in the hub.
    doors: Vec<Door>,
    hub: Holder,
    spaces: BTreeMap<String, Space>,
}

struct Space {
    holder: Holder,
    host: u8,
}

impl Net {
    /// What this machine lacks for it: the programs, or the right to use them.
    ///
    /// # Errors
    /// With what is lacking.
    pub fn possible() -> Result<(), String> {
        for program in ["unshare", "nsenter", "mount", "ip"] {
            let found = std::env::var_os("PATH").is_some_and(|path| {
                std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
            });
            if !found && !Path::new("/usr/sbin").join(program).is_file() {
                return Err(format!("the program {program}"));
            }
        }
        let tried = Self::lay(&["probe"]);
        tried
            .map(|_| ())
            .map_err(|why| format!("network namespaces, which need root: {why}"))
    }

    /// A hub with a namespace for each name.
    ///
    /// # Errors
    /// With what the machine does not allow.
    pub fn lay(names: &[&str]) -> Result<Self, String> {
        let hub = Holder::start()?;
        let mut script = String::from("link set lo up\n");
        for lane in Lane::BOTH {
            let (name, address) = (lane.name(), lane.address(HUB));
            script.push_str(&format!(
                "link add {name} type bridge\naddress add {address}/24 dev {name}\nlink set {name} up\n"
            ));
        }
        hub.ip(&script)?;
        let mut spaces = BTreeMap::new();
        for (host, name) in (HUB + 1..).zip(names) {
            spaces.insert((*name).to_owned(), Space::join(&hub, host)?);
        }
        Ok(Self {
            doors: Vec::new(),
            hub,
            spaces,
        })
    }

    /// Opens a door: connections to this port of the machine's loopback go on to the same port in the hub, or in the namespace named.
    ///
    /// # Panics
    /// If it cannot be opened.
    pub fn door(&mut self, name: Option<&str>, port: SocketAddr) {
        let into = name.map_or(&self.hub, |name| &self.space(name).holder);
        let door = Door::open(port, into).unwrap_or_else(|why| panic!("a door at {port}: {why}"));
        self.doors.push(door);
    }

    fn space(&self, name: &str) -> &Space {
        let space = self.spaces.get(name);
        space.unwrap_or_else(|| panic!("no namespace {name}"))
    }

    /// What to put in front of a command so that it runs in the hub.
    #[must_use]
    pub fn in_hub(&self) -> Vec<String> {
        self.hub.prefix()
    }

    /// What to put in front of a command so that it runs in a namespace.
    #[must_use]
    pub fn inside(&self, name: &str) -> Vec<String> {
        self.space(name).holder.prefix()
    }

    /// The hub's address on a lane.
    #[must_use]
    pub fn hub_address(&self, lane: Lane) -> Ipv4Addr {
        lane.address(HUB)
    }

    /// A namespace's address on a lane, where its interface is called `control` or `data`.
    #[must_use]
    pub fn address(&self, name: &str, lane: Lane) -> Ipv4Addr {
        lane.address(self.space(name).host)
    }

    /// Pulls a namespace's cable out of a lane: what is sent either way is lost, and nobody is told.
    ///
    /// # Panics
    /// If that fails.
    pub fn cut(&self, name: &str, lane: Lane) {
        self.set(name, lane, "down");
    }

    /// Puts it back.
    ///
    /// # Panics
    /// If that fails.
    pub fn heal(&self, name: &str, lane: Lane) {
        self.set(name, lane, "up");
    }

    /// Puts all of them back.
    ///
    /// # Panics
    /// If that fails.
    pub fn heal_all(&self) {
        for name in self.spaces.keys() {
            Lane::BOTH.into_iter().for_each(|lane| self.heal(name, lane));
        }
    }

    fn set(&self, name: &str, lane: Lane, state: &str) {
        // The hub's end of the cable: the namespace's own keeps its routes.
        let port = port(lane, self.space(name).host);
        let done = self.hub.ip(&format!("link set {port} {state}\n"));
        done.unwrap_or_else(|why| panic!("link set {port} {state}: {why}"));
    }
}

impl Space {
    /// A namespace with a cable to each bridge.
    fn join(hub: &Holder, host: u8) -> Result<Self, String> {
        let holder = Holder::start()?;
        let mut in_hub = String::new();
        let mut inside = String::from("link set lo up\n");
        for lane in Lane::BOTH {
            let (name, port, address) = (lane.name(), port(lane, host), lane.address(host));
            in_hub.push_str(&format!(
                "link add {port} type veth peer name {name} netns {}\nlink set {port} master {name}\nlink set {port} up\n",
                holder.pid()
            ));
            inside.push_str(&format!(
                "address add {address}/24 dev {name}\nlink set {name} up\n"
            ));
        }
        hub.ip(&in_hub)?;
        holder.ip(&inside)?;
        Ok(Self { holder, host })
    }
}

/// The hub's end of a cable.
fn port(lane: Lane, host: u8) -> String {
    format!("{}{host}", lane.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Whether a namespace reaches the hub's port on a lane, within a second.
    fn reaches(net: &Net, name: &str, lane: Lane, port: u16) -> bool {
        let prefix = net.inside(name);
        let dial = format!("exec 3<>/dev/tcp/{}/{port}", net.hub_address(lane));
        let mut command = Command::new(&prefix[0]);
        command
            .args(&prefix[1..])
            .args(["timeout", "1", "bash", "-c", &dial]);
        command.output().unwrap().status.success()
    }

    #[tokio::test]
    async fn a_cable_can_be_pulled_out_and_put_back() {
        if let Err(lacking) = Net::possible() {
            println!("not run: needs {lacking}");
            return;
        }
        // A server in the hub: a relay made by a door would do as well, but this is what processes do.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let outside = listener.local_addr().unwrap();
        drop(listener);
        let mut net = Net::lay(&["one", "two"]).unwrap();
        net.door(None, outside);
        let server = net.hub.listen(outside.port()).unwrap();
        for lane in Lane::BOTH {
            assert!(reaches(&net, "one", lane, outside.port()), "{lane:?}");
            net.cut("one", lane);
            assert!(!reaches(&net, "one", lane, outside.port()), "{lane:?}");
            assert!(reaches(&net, "two", lane, outside.port()), "{lane:?}");
            net.heal("one", lane);
            // The other end of a cable is told within a second or so.
            assert!(
                (0..10).any(|_| reaches(&net, "one", lane, outside.port())),
                "{lane:?}"
            );
        }
        // The door leads to the hub's loopback.
        let before = server.accepted();
        let _stream = std::net::TcpStream::connect(outside).unwrap();
        server.wait_for(before + 1);
    }
}
