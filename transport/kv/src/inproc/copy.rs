//! One read, from look-up to end.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Hub, TRANSPORT, shared::Shared};
use crate::{OutOfRange, Read, ReadError, ReadStats, Refusal, Run, coalesce};

/// Performs a read that was accepted, and emits its end.
pub(super) fn perform(hub: &Hub, reader: &Shared, read: &Read) {
    let result = Hub::parse(&read.source)
        .map_err(|e| ReadError::Local(e.to_string()))
        .and_then(|id| {
            hub.find(id)
                .ok_or_else(|| ReadError::SourceLost("it has left this process".into()))
        })
        .and_then(|source| pull(&source, reader, read));
    reader.end(read.id, result);
}

/// Pins the offer, copies, unpins.
fn pull(source: &Shared, reader: &Shared, read: &Read) -> Result<ReadStats, ReadError> {
    if reader.account().is_cancelled(read.id) {
        return Err(ReadError::Cancelled);
    }
    let runs = pin(source, reader, read).map_err(ReadError::Refused)?;
    // The pin comes off and the read ends, whatever the regions do.
    let copied = catch_unwind(AssertUnwindSafe(|| copy_runs(source, reader, read, &runs)));
    let result = copied.unwrap_or_else(|_| Err(ReadError::Local("the copy panicked".into())));
    if let Ok(stats) = &result {
        source.account().sent(stats.bytes, stats.descriptors, TRANSPORT);
    }
    source.unpin(read.key);
    result
}

fn pin(source: &Shared, reader: &Shared, read: &Read) -> Result<Vec<Run>, Refusal> {
    let mut account = source.account();
    let count = u32::try_from(read.into.len()).map_err(|_| Refusal::OutOfRange)?;
    let found = if source.memory.block_bytes() == reader.memory.block_bytes() {
        account
            .offers
            .look_up(read.key, read.capability, read.from, count)
    } else {
        Err(Refusal::Layout)
    };
    match found.map(|blocks| coalesce(blocks, &read.into, u32::MAX)) {
        Ok(runs) => {
            account.answer(read.key);
            Ok(runs)
        }
        Err(why) => {
            account.refused();
            Err(why)
        }
    }
}

fn copy_runs(source: &Shared, reader: &Shared, read: &Read, runs: &[Run]) -> Result<ReadStats, ReadError> {
    let block_bytes = reader.memory.block_bytes();
    let (mut sent, mut landed) = (vec![0u8; block_bytes], vec![0u8; block_bytes]);
    let outside = |e: OutOfRange| ReadError::Local(e.to_string());
    let mut bytes = 0u64;
    for run in runs {
        for i in 0..run.count {
            if reader.account().is_cancelled(read.id) {
                return Err(ReadError::Cancelled);
            }
            let (from, to) = (run.source + i, run.into + i);
            source.memory.read_into(from, 0, &mut sent).map_err(outside)?;
            reader.memory.write_from(to, 0, &sent).map_err(outside)?;
            // What counts is what landed.
            reader.memory.read_into(to, 0, &mut landed).map_err(outside)?;
            if landed != sent {
                return Err(ReadError::Corrupt { block: to });
            }
            bytes += block_bytes as u64;
        }
    }
    Ok(ReadStats {
        bytes,
        descriptors: u32::try_from(runs.len()).unwrap_or(u32::MAX),
        transport: TRANSPORT,
    })
}
