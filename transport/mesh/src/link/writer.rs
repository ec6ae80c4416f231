//! From the queue to the stream.

use std::sync::Arc;
use std::time::Duration;

use quinn::{SendStream, WriteError};
use tokio::sync::mpsc;
use tokio::time::timeout;
use wire::EncodedFrame;

use crate::config::Config;
use crate::faults::Switch;
use crate::link::reader::lost;
use crate::link::{Core, DownReason};

/// Writes until the link is over. When it is to finish, what is queued is delivered first, within the flush deadline.
pub(crate) async fn write_loop(
    core: &Arc<Core>,
    mut stream: SendStream,
    mut waiting: mpsc::Receiver<EncodedFrame>,
    switch: &Switch,
    config: &Config,
) -> DownReason {
    let stall = config.stall_deadline;
    let mut held = switch.held();
    loop {
        let frame = tokio::select! {
            biased;
            frame = held.due() => frame,
            frame = waiting.recv() => match frame {
                Some(frame) => {
                    core.dequeued(frame.as_bytes().len());
                    match held.judge(switch, frame) {
                        Some(frame) => frame,
                        None => continue,
                    }
                }
                None => return DownReason::Stopped,
            },
            () = core.finishing.cancelled() => {
                let flushed = timeout(config.flush_deadline, finish(core, stream, waiting, stall)).await;
                return flushed.ok().flatten().unwrap_or(DownReason::Stopped);
            }
        };
        if let Err(why) = write(core, &mut stream, &frame, stall).await {
            return why;
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
        Ok(Err(WriteError::ConnectionLost(error))) => Err(lost(&error)),
        Ok(Err(error)) => Err(DownReason::Lost(error.to_string())),
        Err(_) => Err(DownReason::NotReading { stalled: stall }),
    }
}

/// Writes what is queued, and waits until the peer has it. `None` if all went well.
async fn finish(
    core: &Core,
    mut stream: SendStream,
    mut waiting: mpsc::Receiver<EncodedFrame>,
    stall: Duration,
) -> Option<DownReason> {
    waiting.close();
    while let Some(frame) = waiting.recv().await {
        core.dequeued(frame.as_bytes().len());
        if let Err(why) = write(core, &mut stream, &frame, stall).await {
            return Some(why);
        }
    }
    if stream.finish().is_ok() {
        // An error means that the connection is over, which is what follows anyway.
        let _ = stream.stopped().await;
    }
    None
}
