//! From the queue to the stream.

use std::sync::Arc;
use std::time::Duration;

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

/// Writes what is queued until nothing can be queued any more, and then waits until the peer has it.
async fn deliver(
    core: &Core,
    mut stream: SendStream,
    mut waiting: mpsc::Receiver<EncodedFrame>,
    switch: &Switch,
    stall: Duration,
) -> DownReason {
    let mut held = switch.held();
    loop {
        // Waits for work, as long as the link lives: `run` ends it.
        let frame = tokio::select! {
            biased;
            frame = held.due() => frame,
            () = core.finishing.cancelled(), if !waiting.is_closed() => {
                waiting.close();
                continue;
            }
            frame = waiting.recv() => {
                let Some(frame) = frame else { break };
                core.dequeued(frame.as_bytes().len());
                match held.judge(switch, frame) {
                    Some(frame) => frame,
                    None => continue,
                }
            }
        };
        if let Err(why) = write(core, &mut stream, &frame, stall).await {
            return why;
        }
    }
    if stream.finish().is_ok() {
        // An error means that the connection is over, which is what follows anyway.
        let _ = stream.stopped().await;
    }
    DownReason::Stopped
}

impl From<WriteError> for DownReason {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::ConnectionLost(error) => lost(&error),
            error => Self::Lost(error.to_string()),
        }
    }
}

async fn write(
    core: &Core,
    stream: &mut SendStream,
    frame: &EncodedFrame,
    stall: Duration,
) -> Result<(), DownReason> {
    match timeout(stall, stream.write_all(frame.as_bytes())).await {
        Ok(Ok(())) => {
            core.counters.sent(frame.as_bytes().len());
            Ok(())
        }
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(DownReason::NotReading { stalled: stall }),
    }
}
