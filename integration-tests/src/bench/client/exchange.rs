//! One request and its answer.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::report::Tally;
use super::sse::Events;

/// Between two pieces of an answer. Passing it means a wait without an end.
const SILENCE: Duration = Duration::from_secs(300);

/// A client, which has one connection at a time.
pub(in crate::bench) struct Client {
    to: SocketAddr,
    /// Whether each request has a connection of its own.
    fresh: bool,
    connection: Option<Connection>,
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// Owns the task that drives it.
    _task: JoinSet<()>,
}

/// What a client makes of an answer while it comes.
pub(in crate::bench) struct Watch<'a> {
    /// Where it is noted.
    pub(in crate::bench) tally: &'a Tally,
    /// How far apart texts should come.
    pub(in crate::bench) period: Option<Duration>,
    /// Told when the first text has come.
    pub(in crate::bench) on_first: &'a (dyn Fn() + Sync),
    /// Whether times between texts count.
    pub(in crate::bench) counts: &'a (dyn Fn() -> bool + Sync),
}

impl Client {
    pub(in crate::bench) fn new(to: SocketAddr, fresh: bool) -> Self {
        Self {
            to,
            fresh,
            connection: None,
        }
    }

    /// Asks, and notes the answer and how it ended. Dropping this cuts the connection once the client is dropped too.
    pub(in crate::bench) async fn ask(&mut self, path: &str, body: Bytes, watch: &Watch<'_>) {
        let asked = Instant::now();
        let answered = async {
            let response = self.send(path, body, watch.tally).await?;
            follow(response, asked, watch).await
        };
        if let Err(error) = answered.await {
            self.connection = None;
            watch.tally.note(|report| report.failed(error));
        }
    }

    /// Sends a request, over the connection that there is or a new one, and waits for the head of its answer.
    async fn send(&mut self, path: &str, body: Bytes, tally: &Tally) -> Result<Response<Incoming>, String> {
        let request = || {
            let request = Request::post(path)
                .header("host", self.to.to_string())
                .header("content-type", "application/json")
                .body(Full::new(body.clone()));
            request.map_err(|error| error.to_string())
        };
        if self.fresh {
            self.connection = None;
        }
        if let Some(connection) = &mut self.connection
            // Else the server has closed it in the meantime.
            && connection.sender.ready().await.is_ok()
        {
            return answer(connection, request()?).await;
        }
        let request = request()?;
        let connection = self.connection.insert(Connection::open(self.to).await?);
        tally.note(|report| report.connections += 1);
        answer(connection, request).await
    }
}

async fn answer(
    connection: &mut Connection,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, String> {
    let answered = timeout(SILENCE, connection.sender.send_request(request)).await;
    let answered = answered.map_err(|_| format!("no answer for {} s", SILENCE.as_secs()))?;
    answered.map_err(|error| error.to_string())
}

impl Connection {
    async fn open(to: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(to).await.map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let shaken = handshake(TokioIo::new(stream)).await;
        let (sender, connection) = shaken.map_err(|error| error.to_string())?;
        let mut task = JoinSet::new();
        task.spawn(async move {
            // What goes wrong is seen in the answer.
            let _ = connection.await;
        });
        Ok(Self { sender, _task: task })
    }
}

/// Reads an answer to its end.
async fn follow(response: Response<Incoming>, asked: Instant, watch: &Watch<'_>) -> Result<(), String> {
    let status = response.status();
    let mut body = response.into_body();
    let mut events = Events::default();
    let (mut first, mut last) = (None, asked);
    while let Some(frame) = timeout(SILENCE, body.frame())
        .await
        .map_err(|_| format!("nothing came for {} s", SILENCE.as_secs()))?
    {
        let Ok(bytes) = frame.map_err(|error| error.to_string())?.into_data() else {
            continue;
        };
        events.unread().extend_from_slice(&bytes);
        if !status.is_success() {
            continue;
        }
        let texts = events.read();
        if texts == 0 {
            continue;
        }
        let now = Instant::now();
        let is_first = first.is_none();
        if is_first {
            first = Some(now - asked);
            (watch.on_first)();
        }
        // Of the first one, this is the time since it was asked for.
        watch.text(texts, is_first, now - last);
        last = now;
    }
    if !status.is_success() {
        let said = String::from_utf8_lossy(events.unread()).into_owned();
        return Err(format!("{status}: {said}"));
    }
    if let Some(error) = events.error {
        return Err(error);
    }
    let usage = events.usage.ok_or("the server does not say what was used")?;
    if !events.done {
        return Err("the stream has no end".to_owned());
    }
    watch
        .tally
        .note(|report| report.ended(usage, first, last - asked, asked.elapsed()));
    Ok(())
}

impl<'a> Watch<'a> {
    /// All of it counts.
    pub(in crate::bench) fn of(tally: &'a Tally) -> Self {
        Self {
            tally,
            period: None,
            on_first: &|| (),
            counts: &|| true,
        }
    }

    /// Notes texts that came together, so long after what came before.
    fn text(&self, texts: usize, is_first: bool, gap: Duration) {
        let counts = (self.counts)();
        self.tally.note(|report| {
            report.texts += texts as u64;
            if is_first {
                report.first.add(gap);
            }
            if !counts {
                return;
            }
            let gaps = [gap].into_iter().chain(std::iter::repeat(Duration::ZERO));
            for gap in gaps.take(texts).skip(usize::from(is_first)) {
                report.gaps.add(gap);
                if let Some(period) = self.period {
                    report.jitter.add(gap.abs_diff(period));
                }
            }
        });
    }
}
