//! Connections: dialled, accepted, closed by force, and the UCX worker made anew when a close does not end.

use std::{
    collections::{BTreeSet, VecDeque},
    net::SocketAddr,
    time::{Duration, Instant},
};

use kv::{ReadError, ReadId};

use super::{Engine, EpId, ServeId, Tag};
use crate::port::{Body, EpHandle, Port};

/// Most endpoints, dialled and accepted.
const MAX_ENDPOINTS: usize = 4_096;
/// How often a lost listener is tried again, and at most how many times before another port is taken.
const REOPEN_PAUSE: Duration = Duration::from_millis(50);
const REOPEN_SAME_PORT: u32 = 20;
const REOPEN_LIMIT: u32 = 100;

/// One connection.
pub(super) struct Endpoint {
    pub(super) handle: EpHandle,
    /// Where it was dialled to; None if it was accepted.
    dialled: Option<SocketAddr>,
    /// When its forced close began.
    pub(super) closing: Option<Instant>,
    closed: bool,
    /// Operations under way on it.
    ops: u32,
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
        let port = self
            .port
            .as_mut()
            .ok_or_else(|| ReadError::Local("UCX is being restarted".into()))?;
        match port.dial(to) {
            Ok(handle) => {
                let id = self.adopt(handle, Some(to));
                self.dialled.insert(to, id);
                Ok(id)
            }
            Err(status) => Err(ReadError::SourceLost(self.ucx.describe(status))),
        }
    }

    /// Takes an accepted connection in; refuses it where there are too many.
    pub(super) fn on_connect(&mut self, request: crate::port::ConnRequest) {
        let full = self.endpoints.len() >= MAX_ENDPOINTS;
        let Some(port) = self.port.as_mut() else { return };
        if full {
            port.reject(request);
            return;
        }
        match port.accept(request) {
            Ok(handle) => {
                self.adopt(handle, None);
            }
            Err(status) => tracing::debug!(why = self.ucx.describe(status), "a connection was not accepted"),
        }
    }

    fn adopt(&mut self, handle: EpHandle, dialled: Option<SocketAddr>) -> EpId {
        let id = EpId(self.mint());
        let endpoint = Endpoint {
            handle,
            dialled,
            closing: None,
            closed: false,
            ops: 0,
            progress: self.now,
            reads: BTreeSet::new(),
            serves: BTreeSet::new(),
            ready: VecDeque::new(),
            sending: 0,
            transport: None,
        };
        self.endpoints.insert(id, endpoint);
        self.by_handle.insert(handle, id);
        id
    }

    /// The endpoint, if it is open.
    pub(super) fn open_endpoint(&mut self, id: EpId) -> Option<&mut Endpoint> {
        self.endpoints.get_mut(&id).filter(|ep| ep.closing.is_none())
    }

    /// Sends on an open endpoint. False if it is not open.
    pub(super) fn send(&mut self, id: EpId, message: u32, header: Vec<u8>, body: Body, tag: Tag) -> bool {
        let Some(ep) = self.endpoints.get_mut(&id).filter(|ep| ep.closing.is_none()) else {
            return false;
        };
        let Some(port) = self.port.as_mut() else {
            return false;
        };
        ep.ops += 1;
        port.send(ep.handle, message, header, body, tag);
        true
    }

    /// Counts a receive begun on an endpoint.
    pub(super) fn op_begun(&mut self, id: EpId) {
        if let Some(ep) = self.endpoints.get_mut(&id) {
            ep.ops += 1;
        }
    }

    /// An operation on the endpoint has ended.
    pub(super) fn op_ended(&mut self, id: EpId, failed: bool) {
        let Some(ep) = self.endpoints.get_mut(&id) else {
            return;
        };
        ep.ops = ep.ops.saturating_sub(1);
        if failed {
            self.close(id, &ReadError::SourceLost("an operation failed".into()));
        }
        self.finish_close(id);
    }

    /// Closes an endpoint by force. Its reads fail with `why` where they have not failed otherwise; they and its
    /// answers end when the endpoint is gone and its operations have ended.
    pub(super) fn close(&mut self, id: EpId, why: &ReadError) {
        let Some(ep) = self.open_endpoint(id) else { return };
        let (handle, dialled) = (ep.handle, ep.dialled);
        ep.ready.clear();
        let (reads, serves) = (ep.reads.clone(), ep.serves.clone());
        let now = self.now;
        if let Some(ep) = self.endpoints.get_mut(&id) {
            ep.closing = Some(now);
        }
        self.by_handle.remove(&handle);
        if let Some(to) = dialled {
            self.dialled.remove(&to);
        }
        for read in reads {
            if let Some(reading) = self.reads.get_mut(&read) {
                reading.fail(why.clone());
            }
        }
        for serve in serves {
            if let Some(serving) = self.serves.get_mut(&serve) {
                serving.stop();
            }
        }
        if let Some(port) = self.port.as_mut() {
            port.close(handle, Tag::Closed(id));
        }
        tracing::debug!(endpoint = id.0, %why, "endpoint closed by force");
    }

    /// UCX says that an endpoint is dead.
    pub(super) fn on_ep_failed(&mut self, handle: EpHandle, status: crate::sys::Status) {
        if let Some(&id) = self.by_handle.get(&handle) {
            let why = ReadError::SourceLost(self.ucx.describe(status));
            self.close(id, &why);
        }
    }

    /// The close of an endpoint has ended.
    pub(super) fn on_closed(&mut self, id: EpId) {
        if let Some(ep) = self.endpoints.get_mut(&id) {
            ep.closed = true;
        }
        self.finish_close(id);
    }

    /// Once the endpoint is gone and nothing of it is under way, tells what waited for that.
    fn finish_close(&mut self, id: EpId) {
        if self.endpoints.get(&id).is_some_and(|ep| ep.closed && ep.ops == 0) {
            self.bury(id);
        }
    }

    /// Forgets an endpoint of which UCX touches nothing any more, and ends its reads and answers.
    fn bury(&mut self, id: EpId) {
        let Some(ep) = self.endpoints.remove(&id) else {
            return;
        };
        for read in ep.reads {
            self.end_read(read);
        }
        for serve in ep.serves {
            if let Some(serving) = self.serves.remove(&serve) {
                self.shared.unpin(serving.key);
            }
        }
    }

    /// Destroys the UCX worker, after which nothing can land or be read, and opens another, if it can on the same
    /// port. Every read and every answer under way ends.
    pub(super) fn rebuild(&mut self) {
        tracing::warn!("an endpoint does not end: the UCX worker is made anew");
        self.destroy();
        // Before anyone is told, so that whoever tries again finds it; but a first failure delays no one.
        self.reopen(self.bound);
        self.bury_all(&ReadError::SourceLost("the UCX worker was made anew".into()));
        let mut attempt = 0;
        while self.port.is_none() && attempt < REOPEN_LIMIT && !self.shared.stopping() {
            std::thread::sleep(REOPEN_PAUSE);
            attempt += 1;
            let port = if attempt < REOPEN_SAME_PORT {
                self.bound.port()
            } else {
                0
            };
            self.reopen(SocketAddr::new(self.bound.ip(), port));
        }
        if self.port.is_none() {
            tracing::error!("UCX does not open again: this transfer has stopped");
        }
    }

    fn reopen(&mut self, bind: SocketAddr) {
        match Port::open(&self.ucx, &self.config, bind) {
            Ok(port) => {
                self.bound = port.address();
                self.shared.state().address = Some(self.bound);
                self.port = Some(port);
            }
            Err(e) => tracing::debug!(%e, "UCX did not open again yet"),
        }
    }

    /// Ends UCX: no operation touches anything any more.
    pub(super) fn destroy(&mut self) {
        self.port = None;
        self.by_handle.clear();
        self.dialled.clear();
        self.stalls = 0;
    }

    /// After [`Self::destroy`]: ends everything that was under way.
    pub(super) fn bury_all(&mut self, why: &ReadError) {
        for reading in self.reads.values_mut() {
            reading.abandon(why.clone());
        }
        for id in self.endpoints.keys().copied().collect::<Vec<_>>() {
            self.bury(id);
        }
    }
}
