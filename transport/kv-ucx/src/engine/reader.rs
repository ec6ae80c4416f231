//! The reader's role: asks, accepts what it asked for, verifies it, and tells the end.

use std::net::SocketAddr;

use kv::{Read, ReadError, ReadId};

use super::{
    Engine, EpId, Tag,
    reading::{Piece, Reading},
};
use crate::{
    message::{self, DataMessage, ReadMessage},
    port::{Body, Message, Payload},
};

/// The carrier where UCX does not tell.
const UNKNOWN: &str = "ucx";

impl Engine {
    /// Sends the READ.
    pub(super) fn start_read(&mut self, read: Read, from: SocketAddr) {
        let ep = match self.endpoint_to(from) {
            Ok(ep) => ep,
            Err(why) => {
                self.shared.end(read.id, Err(why));
                return;
            }
        };
        let id = read.id;
        let reading = Reading::new(read, ep, self.now);
        let ask = ReadMessage {
            id,
            key: reading.read.key,
            capability: reading.read.capability,
            from: reading.read.from,
            block_bytes: self.region.block_bytes() as u64,
            runs: reading.runs(),
        };
        self.reads.insert(id, reading);
        if let Some(endpoint) = self.endpoints.get_mut(&ep) {
            endpoint.reads.insert(id);
        }
        let (header, body) = ask.encode();
        self.send(ep, message::ID_READ, header, Body::Bytes(body), Tag::Control);
    }

    /// Takes no more of a read and tells the source; it ends when what is landing has landed.
    pub(super) fn cancel_read(&mut self, id: ReadId) {
        self.fail_read(id, ReadError::Cancelled);
    }

    fn fail_read(&mut self, id: ReadId, why: ReadError) {
        let Some(reading) = self.reads.get_mut(&id) else {
            return;
        };
        let (ep, wanted) = (reading.ep, reading.wants_data());
        reading.fail(why);
        if wanted && !reading.wants_data() {
            self.send_cancel(ep, id);
        }
        self.settle_read(id);
    }

    /// Tells the source that no more of a read is wanted.
    fn send_cancel(&mut self, ep: EpId, id: ReadId) {
        let header = message::encode_cancel(id);
        let nothing = Body::Bytes(Vec::new());
        self.send(ep, message::ID_CANCEL, header, nothing, Tag::Control);
    }

    /// A piece of data came. Nothing lands but for a read that is open on the endpoint it came by.
    pub(super) fn on_data(&mut self, ep: EpId, message: Message) {
        let header = DataMessage::decode(&message.header);
        let wanted = header.and_then(|data| {
            let reading = self.reads.get_mut(&data.id)?;
            (reading.ep == ep && reading.wants_data()).then_some((data, reading))
        });
        let Some((data, reading)) = wanted else {
            self.discard(ep, message.payload);
            return;
        };
        reading.progress = self.now;
        match reading.take(&data, message.payload.len(), self.region.block_bytes()) {
            Ok(piece) => self.land(ep, data.id, piece, message.payload),
            Err(why) => {
                self.discard(ep, message.payload);
                self.fail_read(data.id, why);
            }
        }
    }

    /// Puts a piece that was taken where it belongs.
    fn land(&mut self, ep: EpId, read: ReadId, piece: Piece, payload: Payload) {
        self.note_transport(ep);
        let Some(endpoint) = self.endpoints.get_mut(&ep) else {
            return;
        };
        let written = match (self.region.span(piece.into, piece.count), payload) {
            (Some(span), Payload::Rendezvous { data, .. }) => {
                let tag = Tag::Landing { read, piece };
                endpoint.connection.receive(data, span, tag);
                return;
            }
            (Some(_), payload) => {
                let region = &self.region;
                let write = |bytes: &[u8]| region.write(piece.into, bytes);
                endpoint.connection.consume(payload, write).unwrap_or(false)
            }
            (None, payload) => {
                endpoint.connection.discard(payload);
                false
            }
        };
        self.landed(read, &piece, written);
    }

    /// UCX touches the blocks of a piece no more: it has written them, or they are outside of the region.
    pub(super) fn landed(&mut self, read: ReadId, piece: &Piece, written: bool) {
        let Some(reading) = self.reads.get_mut(&read) else {
            return;
        };
        reading.progress = self.now;
        if let Some(endpoint) = self.endpoints.get_mut(&reading.ep) {
            endpoint.progress = self.now;
        }
        let span = self.region.span(piece.into, piece.count).filter(|_| written);
        let checksum = match span {
            Some(span) => {
                let index = reading.read.from.wrapping_add(piece.at);
                Ok(self.region.checksum(reading.read.key, index, span))
            }
            None => Err(ReadError::Local("a block is outside of the region".into())),
        };
        let (ep, wanted) = (reading.ep, reading.wants_data());
        reading.landed(piece, checksum);
        if wanted && reading.has_failed() {
            self.send_cancel(ep, read);
        }
        self.settle_read(read);
    }

    /// The source said no.
    pub(super) fn on_refuse(&mut self, ep: EpId, header: &[u8]) {
        let Some((id, why)) = message::decode_refusal(header) else {
            return;
        };
        if let Some(reading) = self.reads.get_mut(&id).filter(|reading| reading.ep == ep) {
            reading.fail(ReadError::Refused(why));
            self.settle_read(id);
        }
    }

    /// Tells the end of a read, once it is complete or has failed and nothing of it can land any more.
    pub(super) fn settle_read(&mut self, id: ReadId) {
        let Some(reading) = self.reads.get(&id) else {
            return;
        };
        let ep = reading.ep;
        let transport = self.endpoints.get(&ep).and_then(|ep| ep.transport);
        let ended = reading.ended(self.region.block_bytes(), transport.unwrap_or(UNKNOWN));
        let Some(result) = ended else { return };
        self.reads.remove(&id);
        if let Some(endpoint) = self.endpoints.get_mut(&ep) {
            endpoint.reads.remove(&id);
        }
        self.shared.end(id, result);
    }

    /// What carries the bytes of an endpoint; asked once, when it is in use.
    pub(super) fn note_transport(&mut self, id: EpId) -> &'static str {
        let Some(ep) = self.endpoints.get_mut(&id) else {
            return UNKNOWN;
        };
        let connection = &ep.connection;
        ep.transport.get_or_insert_with(|| {
            let names = connection.transports();
            tracing::debug!(endpoint = id.0, transports = names.join(","), "endpoint in use");
            label(&names)
        })
    }

    pub(super) fn discard(&mut self, ep: EpId, payload: Payload) {
        if let Some(endpoint) = self.endpoints.get_mut(&ep) {
            endpoint.connection.discard(payload);
        }
    }
}

/// What carries the bytes of an endpoint that uses these transports: UCX takes the fastest it has for data, and keeps
/// tcp beside it for connecting.
fn label(names: &[String]) -> &'static str {
    let any = |prefixes: &[&str]| {
        names
            .iter()
            .any(|name| prefixes.iter().any(|p| name.starts_with(p)))
    };
    if any(&["posix", "sysv", "xpmem", "cma", "knem", "shm"]) {
        "ucx-shm"
    } else if any(&["rc", "dc", "ud", "ib", "gga"]) {
        "ucx-rdma"
    } else if any(&["tcp"]) {
        "ucx-tcp"
    } else {
        UNKNOWN
    }
}

#[cfg(test)]
mod tests {
    use super::label;

    fn check(names: &[&str], want: &str) {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        assert_eq!(label(&names), want);
    }

    #[test]
    fn labels_name_the_carrier() {
        check(&["tcp"], "ucx-tcp");
        check(&["posix", "tcp"], "ucx-shm");
        check(&["tcp", "rc_mlx5"], "ucx-rdma");
        check(&[], "ucx");
    }
}
