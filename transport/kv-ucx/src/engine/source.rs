//! The source's role: answers while the offer stands, keeps it pinned until every send has ended.

use kv::{ReadId, Refusal};

use super::{Engine, EpId, ServeId, Tag, serving::Serving};
use crate::{
    message::{self, DataMessage, ReadMessage},
    port::{Body, Message},
};

/// Answers under way on one endpoint.
const MAX_SERVES: usize = 4_096;
/// Pieces in flight on one endpoint.
const MAX_SENDING: u32 = 16;

impl Engine {
    /// A peer asks for blocks.
    pub(super) fn on_read(&mut self, ep: EpId, message: Message) {
        let id = ReadMessage::peek_id(&message.header);
        let header = message.header;
        let ask = self.endpoints.get_mut(&ep).and_then(|endpoint| {
            let decode = |bytes: &[u8]| ReadMessage::decode(&header, bytes);
            endpoint.connection.consume(message.payload, decode).flatten()
        });
        let result = match ask {
            Some(ask) => self.admit(ep, &ask),
            None => Err(Refusal::Malformed),
        };
        if let (Err(why), Some(id)) = (result, id) {
            self.refuse(ep, id, why);
        }
    }

    /// Pins the offer and starts the answer.
    fn admit(&mut self, ep: EpId, ask: &ReadMessage) -> Result<(), Refusal> {
        let block_bytes = self.region.block_bytes();
        if ask.block_bytes != block_bytes as u64 {
            return Err(Refusal::Layout);
        }
        let now = self.now;
        let serves = self
            .endpoints
            .get_mut(&ep)
            .ok_or(Refusal::Malformed)?
            .serves
            .clone();
        if serves.len() >= MAX_SERVES {
            return Err(Refusal::Busy);
        }
        if serves
            .iter()
            .any(|serve| self.serves.get(serve).is_some_and(|s| s.read == ask.id))
        {
            return Err(Refusal::Malformed);
        }
        let serving = {
            let mut state = self.shared.state();
            let offers = &state.account.offers;
            let blocks = offers.look_up(ask.key, ask.capability, ask.from, ask.blocks())?;
            let serving = Serving::new(ask, blocks, block_bytes, ep, now);
            state.account.answer(ask.key);
            serving
        };
        let serve = ServeId(self.mint());
        self.serves.insert(serve, serving);
        if let Some(endpoint) = self.endpoints.get_mut(&ep) {
            endpoint.serves.insert(serve);
            endpoint.ready.push_back(serve);
        }
        self.pump(ep);
        Ok(())
    }

    /// Sends what may be sent on an endpoint, one piece of each answer in turn.
    fn pump(&mut self, id: EpId) {
        while let Some(ep) = self.endpoints.get_mut(&id) {
            if ep.sending >= MAX_SENDING {
                return;
            }
            let Some(serve) = ep.ready.pop_front() else { return };
            self.send_piece(id, serve);
            let again = self.serves.get(&serve).is_some_and(Serving::ready);
            if let Some(ep) = self.endpoints.get_mut(&id).filter(|_| again) {
                ep.ready.push_back(serve);
            }
        }
    }

    fn send_piece(&mut self, ep: EpId, serve: ServeId) {
        let Some(serving) = self.serves.get_mut(&serve) else {
            return;
        };
        if !self.shared.state().account.offers.stands(serving.key) {
            // Withdrawn meanwhile: what is in flight ends, nothing more is sent.
            serving.stop();
            let read = serving.read;
            self.refuse(ep, read, Refusal::NoSuchOffer);
            self.settle_serve(serve);
            return;
        }
        let Some(run) = serving.next() else { return };
        let Some(span) = self.region.span(run.source, run.count) else {
            serving.sent(self.now);
            serving.stop();
            self.settle_serve(serve);
            return;
        };
        let checksum = self
            .region
            .checksum(serving.key, serving.from.wrapping_add(run.at), span);
        let (id, key) = (serving.read, serving.key);
        let data = DataMessage {
            id,
            key,
            at: run.at,
            count: run.count,
            checksum,
        };
        if let Some(endpoint) = self.endpoints.get_mut(&ep) {
            endpoint.sending += 1;
        }
        let tag = Tag::Data {
            serve,
            blocks: run.count,
        };
        self.send(ep, message::ID_DATA, data.encode(), Body::Region(span), tag);
    }

    /// A piece's send has ended: UCX reads those blocks no more for it.
    pub(super) fn on_sent(&mut self, ep: EpId, serve: ServeId, blocks: u32) {
        let now = self.now;
        if let Some(endpoint) = self.endpoints.get_mut(&ep) {
            endpoint.sending = endpoint.sending.saturating_sub(1);
            endpoint.progress = now;
        }
        let (mut was_ready, mut ready) = (false, false);
        if let Some(serving) = self.serves.get_mut(&serve) {
            was_ready = serving.ready();
            serving.sent(now);
            ready = serving.ready();
        }
        let transport = self.note_transport(ep);
        let bytes = u64::from(blocks) * self.region.block_bytes() as u64;
        self.shared.state().account.sent(bytes, 1, transport);
        if let Some(endpoint) = self.endpoints.get_mut(&ep).filter(|_| ready && !was_ready) {
            endpoint.ready.push_back(serve);
        }
        self.settle_serve(serve);
        self.pump(ep);
    }

    /// Takes the pin off an answer that has ended. Where its endpoint is being closed, that has to end first.
    fn settle_serve(&mut self, serve: ServeId) {
        let Some(serving) = self.serves.get(&serve).filter(|serving| serving.ended()) else {
            return;
        };
        let (ep, key) = (serving.ep, serving.key);
        let Some(endpoint) = self.endpoints.get_mut(&ep) else {
            return;
        };
        endpoint.serves.remove(&serve);
        self.serves.remove(&serve);
        self.shared.unpin(key);
    }

    /// The reader wants no more of it.
    pub(super) fn on_cancel(&mut self, ep: EpId, header: &[u8]) {
        let Some(read) = message::decode_cancel(header) else {
            return;
        };
        let Some(serves) = self
            .endpoints
            .get_mut(&ep)
            .map(|endpoint| endpoint.serves.clone())
        else {
            return;
        };
        for serve in serves {
            if let Some(serving) = self.serves.get_mut(&serve).filter(|serving| serving.read == read) {
                serving.stop();
                self.settle_serve(serve);
            }
        }
    }

    fn refuse(&mut self, ep: EpId, read: ReadId, why: Refusal) {
        self.shared.state().account.refused();
        let header = message::encode_refusal(read, why);
        self.send(
            ep,
            message::ID_REFUSE,
            header,
            Body::Bytes(Vec::new()),
            Tag::Control,
        );
    }

    /// Routes a message. One that came by no open endpoint, or that is of no known kind, changes nothing.
    pub(super) fn on_message(&mut self, ep: EpId, message: Message) {
        if let Some(endpoint) = self.endpoints.get_mut(&ep) {
            endpoint.progress = self.now;
        }
        match message.id {
            message::ID_READ => self.on_read(ep, message),
            message::ID_DATA => self.on_data(ep, message),
            message::ID_REFUSE => {
                self.discard(ep, message.payload);
                self.on_refuse(ep, &message.header);
            }
            message::ID_CANCEL => {
                self.discard(ep, message.payload);
                self.on_cancel(ep, &message.header);
            }
            _ => self.discard(ep, message.payload),
        }
    }
}
