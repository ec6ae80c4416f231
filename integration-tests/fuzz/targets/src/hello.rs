//! The first frames of a link, before anything is known of the other.

use wire::{
    Header, Hello, HelloAck, HelloRefused, HelloReply, Kind, Message, Role, VERSION, agree_version,
    check_node_name, limits,
};

use crate::wire_frame::decode;

/// The bytes as the payload of a hello and of its answers, and as the fields of them.
///
/// # Panics
/// Where something beyond a bound gets through, in either direction, or what may be sent is not read.
pub fn hello(data: &[u8]) {
    for kind in [Kind::Hello, Kind::HelloAck, Kind::HelloRefused] {
        payload(kind, data);
    }
    let mut fields = Fields(data);
    let hello = fields.hello();
    send(&hello, check_hello);
    send(&HelloReply::Accepted(fields.ack()), check_reply);
    let reason = fields.text();
    send(&HelloReply::Refused(HelloRefused { reason }), check_reply);
    let (ours, theirs) = (
        (fields.u16(), fields.u16()),
        (hello.min_version, hello.max_version),
    );
    let speaks = |range: (u16, u16), version| range.0 <= version && version <= range.1;
    match agree_version(ours, theirs) {
        Some(version) => assert!(speaks(ours, version) && speaks(theirs, version)),
        None => assert!(ours.0.max(theirs.0) > ours.1.min(theirs.1)),
    }
}

fn payload(kind: Kind, data: &[u8]) {
    let Ok(length) = u32::try_from(data.len()) else {
        return;
    };
    let header = Header {
        version: VERSION,
        kind: kind.number(),
        length,
    };
    let frame = [&header.to_bytes(), data].concat();
    let (hello, reply) = (decode::<Hello>(&frame), decode::<HelloReply>(&frame));
    assert!(
        data.len() <= limits::MAX_HELLO_BYTES as usize || (hello.is_none() && reply.is_none()),
        "a hello of {} bytes",
        data.len()
    );
    hello.iter().for_each(check_hello);
    reply.iter().for_each(check_reply);
}

/// What may be sent is within its bounds and comes back as it went.
fn send<M: Message + PartialEq>(message: &M, check: fn(&M)) {
    if let Ok(frame) = message.encode(VERSION) {
        check(message);
        assert_eq!(decode::<M>(frame.as_bytes()).as_ref(), Some(message));
    }
}

fn check_hello(hello: &Hello) {
    assert!(hello.min_version <= hello.max_version);
    check_node(&hello.node);
    assert!(!hello.model.is_empty());
    check_line(&hello.model, limits::MAX_NAME_BYTES);
    check_line(&hello.numerics, limits::MAX_NAME_BYTES);
    assert!(hello.kv_address.len() <= limits::MAX_ADDRESS_BYTES);
    assert!(hello.blocks > 0 && hello.block_tokens > 0);
    assert!((1..=limits::MAX_TOKENS).contains(&(hello.context_tokens as usize)));
}

fn check_reply(reply: &HelloReply) {
    match reply {
        HelloReply::Accepted(ack) => {
            check_node(&ack.node);
            assert!(0 < ack.heartbeat_ms && ack.heartbeat_ms < ack.lease_ms);
            assert!(ack.lease_ms <= limits::MAX_LEASE_MS);
        }
        HelloReply::Refused(refused) => check_line(&refused.reason, limits::MAX_REASON_BYTES),
    }
}

/// It becomes part of a DNS name and of paths in logs.
fn check_node(node: &str) {
    assert!(check_node_name(node).is_ok());
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    assert!((1..=limits::MAX_NODE_BYTES).contains(&node.len()) && node.bytes().all(plain));
}

/// It is shown in logs, and must not look like a line of its own there.
fn check_line(text: &str, most: usize) {
    assert!(text.len() <= most && !text.contains(['\n', '\r', '\u{1b}', '\0']));
}

/// Takes fields off the front; past the end all is zero.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes(&mut self, n: usize) -> Vec<u8> {
        let (head, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        head.to_vec()
    }

    fn u64(&mut self) -> u64 {
        let mut number = [0; 8];
        let head = self.bytes(8);
        number[..head.len()].copy_from_slice(&head);
        u64::from_le_bytes(number)
    }

    #[allow(clippy::cast_possible_truncation, reason = "any number will do")]
    fn u32(&mut self) -> u32 {
        let wide = self.u64();
        // Small ones are the likely ones.
        (wide as u32) >> (wide >> 59)
    }

    #[allow(clippy::cast_possible_truncation, reason = "any number will do")]
    fn u16(&mut self) -> u16 {
        self.u32() as u16
    }

    fn text(&mut self) -> String {
        let n = usize::from(self.u16() % 600);
        String::from_utf8_lossy(&self.bytes(n)).into_owned()
    }

    fn hello(&mut self) -> Hello {
        Hello {
            min_version: self.u16(),
            max_version: self.u16(),
            node: self.text(),
            epoch: self.u64(),
            role: Role::ALL[usize::from(self.u16() % 4)],
            model: self.text(),
            layout_hash: self.u64(),
            block_tokens: self.u32(),
            blocks: self.u32(),
            slots: self.u32(),
            context_tokens: self.u32(),
            kv_address: self.text().into_bytes(),
            numerics: self.text(),
            faults: self.u16() % 2 == 1,
        }
    }

    fn ack(&mut self) -> HelloAck {
        HelloAck {
            version: self.u16(),
            node: self.text(),
            epoch: self.u64(),
            heartbeat_ms: self.u32(),
            lease_ms: self.u32(),
        }
    }
}
