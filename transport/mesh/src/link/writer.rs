//! From the queue to the stream.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use quinn::{SendStream, WriteError};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use wire::EncodedFrame;

use crate::config::Config;
use crate::faults::Switch;
use crate::link::{Core, DownReason, lost};

/// Writes until the link is over. When it is to finish, what is queued is delivered first, within the flush deadline.
pub(crate) async fn write_loop(
    core: &Arc<Core>,
    stream: SendStream,
    waiting: mpsc::Receiver<EncodedFrame>,
    switch: &Switch,
    config: &Config,
) -> DownReason {
    let too_late = async {
        core.finishing.cancelled().await;
        sleep(config.flush_deadline).await;
    };
    tokio::select! {
        biased;
        why = deliver(core, stream, waiting, switch, config.stall_deadline) => why,
        () = too_late => DownReason::Stopped,
    }
}

/// Frames that are taken from the queue at a time.
const FRAMES_A_TIME: usize = 64;

/// Bytes after which what was taken is written, however much more there is.
const BYTES_A_WRITE: usize = 64 * 1024;

/// Writes what is queued until nothing can be queued any more, and then waits until the peer has it. What waits is written at once: it goes
/// out in as few packets as it fits in.
async fn deliver(
    core: &Core,
    stream: SendStream,
    mut waiting: mpsc::Receiver<EncodedFrame>,
    switch: &Switch,
    stall: Duration,
) -> DownReason {
    let mut held = switch.held();
    let mut taken = Vec::with_capacity(FRAMES_A_TIME);
    let mut out = Out::new(stream, stall);
    loop {
        // Waits for work, as long as the link lives: `run` ends it.
        tokio::select! {
            biased;
            frame = held.due() => out.add(&frame),
            () = core.finishing.cancelled(), if !waiting.is_closed() => {
                waiting.close();
                continue;
            }
            frames = waiting.recv_many(&mut taken, FRAMES_A_TIME) => {
                if frames == 0 {
                    break;
                }
            }
        }
        for frame in taken.drain(..) {
            core.dequeued(frame.as_bytes().len());
            if let Some(frame) = held.judge(switch, frame) {
                out.add(&frame);
            }
            while let Some(frame) = held.overdue() {
                out.add(&frame);
            }
            if out.is_full()
                && let Err(why) = out.write(core).await
            {
                return why;
            }
        }
        if let Err(why) = out.write(core).await {
            return why;
        }
    }
    out.finish().await;
    DownReason::Stopped
}

/// The stream, and what is to be written to it.
struct Out {
    stream: SendStream,
    bytes: BytesMut,
    frames: usize,
    /// How long the peer may take none of it.
    stall: Duration,
}

impl Out {
    fn new(stream: SendStream, stall: Duration) -> Self {
        Self {
            stream,
            bytes: BytesMut::new(),
            frames: 0,
            stall,
        }
    }

    fn add(&mut self, frame: &EncodedFrame) {
        self.bytes.extend_from_slice(frame.as_bytes());
        self.frames += 1;
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= BYTES_A_WRITE
    }

    async fn write(&mut self, core: &Core) -> Result<(), DownReason> {
        let (bytes, frames) = (self.bytes.split().freeze(), std::mem::take(&mut self.frames));
        if frames == 0 {
            return Ok(());
        }
        let length = bytes.len();
        match timeout(self.stall, self.stream.write_chunk(bytes)).await {
            Ok(Ok(())) => {
                core.counters.sent(frames, length);
                Ok(())
            }
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(DownReason::NotReading { stalled: self.stall }),
        }
    }

    /// Waits until the peer has everything. The flush deadline bounds it.
    async fn finish(&mut self) {
        if self.stream.finish().is_ok() {
            // An error means that the connection is over, which is what follows anyway.
            let _ = self.stream.stopped().await;
        }
    }
}

impl From<WriteError> for DownReason {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::ConnectionLost(error) => lost(&error),
            error => Self::Lost(error.to_string()),
        }
    }
}
