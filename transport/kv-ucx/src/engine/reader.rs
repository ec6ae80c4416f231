//! The reader's role: asks, accepts what it asked for, verifies it, and tells the end.

use std::net::SocketAddr;

use kv::{Read, ReadError, ReadId};

use super::{Engine, EpId, Tag, reading::Reading};
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
        if let Some(endpoint) = self.open_endpoint(ep) {
            endpoint.reads.insert(id);
        }
        let (header, body) = ask.encode();
        self.send(ep, message::ID_READ, header, Body::Bytes(body), Tag::Control(ep));
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
            let header = message::encode_cancel(id);
            self.send(
                ep,
                message::ID_CANCEL,
                header,
                Body::Bytes(Vec::new()),
                Tag::Control(ep),
            );
        }
        self.settle_read(id);
    }

    /// A piece of data came. Nothing lands but for a read that is open on the endpoint it came by.
    pub(super) fn on_data(&mut self, ep: EpId, message: Message) {
        let header = DataMessage::decode(&message.header);
        let wanted = header.and_then(|data| {
            let reading = self.reads.get_mut(&data.id)?;
            (reading.ep == ep && reading.wants_data()).then_some((data, reading))
        });
        let Some((data, reading)) = wanted else {
            self.discard(message.payload);
            return;
        };
        reading.progress = self.now;
        match reading.take(&data, message.payload.len(), self.region.block_bytes()) {
            Ok(piece) => self.land(ep, data.id, piece, message.payload),
            Err(why) => {
                self.discard(message.payload);
                self.fail_read(data.id, why);
            }
        }
    }

    /// Puts a piece that was taken where it belongs.
    fn land(&mut self, ep: EpId, read: ReadId, piece: super::reading::Piece, payload: Payload) {
        self.note_transport(ep);
        let Some(span) = self.region.span(piece.into, piece.count) else {
            self.discard(payload);
            self.landed(
                read,
                &piece,
                Err(ReadError::Local("a block is outside of the region".into())),
            );
            return;
        };
        let Some(port) = self.port.as_mut() else { return };
        if let Payload::Rendezvous { data, .. } = payload {
            port.receive(data, span, Tag::Landing { ep, read, piece });
            self.op_begun(ep);
            return;
        }
        let region = &self.region;
        let written = port
            .consume(payload, |bytes| region.write(piece.into, bytes))
            .unwrap_or(false);
        let checked = if written {
            Ok(())
        } else {
            Err(ReadError::Local("a block is outside of the region".into()))
        };
        self.landed(read, &piece, checked);
    }

    /// UCX has written a piece, or given up: it touches those blocks no more.
    pub(super) fn landed(
        &mut self,
        read: ReadId,
        piece: &super::reading::Piece,
        result: Result<(), ReadError>,
    ) {
        let Some(reading) = self.reads.get_mut(&read) else {
            return;
        };
        reading.progress = self.now;
        if result.is_ok() {
            self.stalls = 0;
        }
        if let Some(endpoint) = self.endpoints.get_mut(&reading.ep) {
            endpoint.progress = self.now;
        }
        let checksum = result.and_then(|()| {
            let span = self.region.span(piece.into, piece.count);
            let span = span.ok_or_else(|| ReadError::Local("a block is outside of the region".into()))?;
            Ok(self
                .region
                .checksum(reading.read.key, reading.read.from.wrapping_add(piece.at), span))
        });
        let wanted = reading.wants_data();
        let ep = reading.ep;
        reading.landed(piece, checksum);
        if wanted && reading.has_failed() {
            let header = message::encode_cancel(read);
            self.send(
                ep,
                message::ID_CANCEL,
                header,
                Body::Bytes(Vec::new()),
                Tag::Control(ep),
            );
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

    /// Ends a read whose time has come. Where its endpoint is being closed, that has to end first.
    fn settle_read(&mut self, id: ReadId) {
        let Some(reading) = self.reads.get(&id) else {
            return;
        };
        let complete = reading.ended(0, "").is_some();
        let ep = reading.ep;
        if complete && self.open_endpoint(ep).is_some() {
            self.end_read(id);
        }
    }

    /// Tells the end of a read of which nothing can land any more.
    pub(super) fn end_read(&mut self, id: ReadId) {
        let Some(mut reading) = self.reads.remove(&id) else {
            return;
        };
        let transport = match self.endpoints.get_mut(&reading.ep) {
            Some(ep) => {
                ep.reads.remove(&id);
                ep.transport.unwrap_or(UNKNOWN)
            }
            None => UNKNOWN,
        };
        let result = reading
            .ended(self.region.block_bytes(), transport)
            .unwrap_or_else(|| {
                let lost = ReadError::SourceLost("the endpoint is gone".into());
                reading.abandon(lost.clone());
                Err(lost)
            });
        self.shared.end(id, result);
    }

    /// What carries the bytes of an endpoint; asked once, when it is in use.
    pub(super) fn note_transport(&mut self, id: EpId) -> &'static str {
        let Some(ep) = self.endpoints.get_mut(&id) else {
            return UNKNOWN;
        };
        let Some(port) = self.port.as_ref().filter(|_| ep.closing.is_none()) else {
            return ep.transport.unwrap_or(UNKNOWN);
        };
        ep.transport.get_or_insert_with(|| {
            let names = port.transports(ep.handle);
            tracing::debug!(endpoint = id.0, transports = names.join(","), "endpoint in use");
            label(&names)
        })
    }

    pub(super) fn discard(&mut self, payload: Payload) {
        if let Some(port) = self.port.as_mut() {
            port.discard(payload);
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
