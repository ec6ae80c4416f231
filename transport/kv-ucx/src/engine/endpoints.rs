//! Connections: dialled, accepted, closed by force.

use std::{
    collections::{BTreeSet, VecDeque},
    net::SocketAddr,
    time::Instant,
};

use kv::{ReadError, ReadId};

use super::{Engine, EpId, ServeId, Tag};
use crate::port::{Body, ConnRequest, Connection};

/// Most endpoints, dialled and accepted.
const MAX_ENDPOINTS: usize = 1_024;

/// One connection, and what goes on over it.
pub(super) struct Endpoint {
    pub(super) connection: Connection<Tag>,
    /// Where it was dialled to; None if it was accepted.
    dialled: Option<SocketAddr>,
    /// When the peer last did anything that its own socket buffers cannot do for it.
    pub(super) progress: Instant,
    pub(super) reads: BTreeSet<ReadId>,
    pub(super) serves: BTreeSet<ServeId>,
    /// Answers that have pieces to send, in turn.
    pub(super) ready: VecDeque<ServeId>,
    /// Pieces in flight.
    pub(super) sending: u32,
    /// What carries its bytes, once known.
    pub(super) transport: Option<&'static str>,
}

impl Endpoint {
    /// Whether anything is under way on it.
    pub(super) fn busy(&self) -> bool {
        !self.reads.is_empty() || !self.serves.is_empty()
    }
}

impl Engine {
    /// The open endpoint to `to`, dialled if there is none.
    pub(super) fn endpoint_to(&mut self, to: SocketAddr) -> Result<EpId, ReadError> {
        if let Some(&id) = self.dialled.get(&to) {
            return Ok(id);
        }
        if self.endpoints.len() >= MAX_ENDPOINTS {
            return Err(ReadError::Local(format!(
                "{MAX_ENDPOINTS} endpoints are open already"
            )));
        }
        let connection =
            Connection::dial(&self.context, to).map_err(|e| ReadError::SourceLost(e.to_string()))?;
        let id = self.adopt(connection, Some(to));
        self.dialled.insert(to, id);
        Ok(id)
    }

    /// Takes an asked-for connection in; refuses it where there are too many.
    pub(super) fn on_connect(&mut self, request: ConnRequest) {
        if self.endpoints.len() >= MAX_ENDPOINTS {
            tracing::warn!(
                limit = MAX_ENDPOINTS,
                "a connection is refused: too many are open"
            );
            self.listener.reject(request);
            return;
        }
        let mut connection = match Connection::unconnected(&self.context) {
            Ok(connection) => connection,
            Err(why) => {
                tracing::warn!(%why, "a connection is refused");
                self.listener.reject(request);
                return;
            }
        };
        match connection.accept(request) {
            Ok(()) => {
                self.adopt(connection, None);
            }
            Err(why) => tracing::debug!(%why, "a connection was not accepted"),
        }
    }

    fn adopt(&mut self, connection: Connection<Tag>, dialled: Option<SocketAddr>) -> EpId {
        let id = EpId(self.mint());
        let endpoint = Endpoint {
            connection,
            dialled,
            progress: self.now,
            reads: BTreeSet::new(),
            serves: BTreeSet::new(),
            ready: VecDeque::new(),
            sending: 0,
            transport: None,
        };
        self.endpoints.insert(id, endpoint);
        id
    }

    /// Sends, unless the endpoint is closed.
    pub(super) fn send(&mut self, id: EpId, message: u32, header: Vec<u8>, body: Body, tag: Tag) {
        if let Some(ep) = self.endpoints.get_mut(&id) {
            ep.connection.send(message, header, body, tag);
        }
    }

    /// Closes an endpoint by force and ends all that goes on over it: its reads fail with `why` where they have not
    /// failed otherwise, its answers give their blocks back.
    pub(super) fn close(&mut self, id: EpId, why: &ReadError) {
        let Some(endpoint) = self.endpoints.remove(&id) else {
            return;
        };
        tracing::debug!(endpoint = id.0, %why, "endpoint closed by force");
        let Endpoint {
            connection,
            dialled,
            reads,
            serves,
            ..
        } = endpoint;
        // From here on UCX touches no byte for it.
        drop(connection);
        if let Some(to) = dialled {
            self.dialled.remove(&to);
        }
        for read in reads {
            if let Some(reading) = self.reads.get_mut(&read) {
                reading.abandon(why.clone());
            }
            self.settle_read(read);
        }
        for serve in serves {
            if let Some(serving) = self.serves.remove(&serve) {
                self.shared.unpin(serving.key);
            }
        }
    }

    /// Closes every endpoint.
    pub(super) fn close_all(&mut self, why: &ReadError) {
        for id in self.endpoints.keys().copied().collect::<Vec<_>>() {
            self.close(id, why);
        }
    }
}
