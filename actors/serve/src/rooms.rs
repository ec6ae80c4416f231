//! `innkeeper rooms`: where every request is.

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::sleep;

use crate::admin::RoomRow;
use crate::cli::RoomsArgs;
use crate::config::Config;
use crate::{http, output};

/// Between two looks of `--watch`.
const AGAIN: Duration = Duration::from_secs(1);

/// Clears the screen and what has scrolled away.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";

/// Asks a gateway's admin listener and prints what it says; with `--watch` until it is interrupted, or the gateway does not answer.
pub(crate) async fn run(config: &Config, args: &RoomsArgs) -> Result<()> {
    let admin = config.admin.listen;
    let path = format!("/rooms{}", query(args));
    loop {
        let body = http::asked(admin, &path).await?;
        if args.json {
            return Ok(output::print(&format!("{}\n", String::from_utf8_lossy(&body)))?);
        }
        let rows: Vec<RoomRow> = serde_json::from_slice(&body)
            .with_context(|| format!("http://{admin}/rooms did not answer with rooms"))?;
        if !args.watch {
            return Ok(output::print(&table(&rows, !query(args).is_empty()))?);
        }
        let clear = if std::io::stdout().is_terminal() {
            CLEAR
        } else {
            ""
        };
        output::print(&format!("{clear}{}\n", table(&rows, !query(args).is_empty())))?;
        // Interrupted: that is how it ends. The process does nothing else.
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => return Ok(()),
            () = sleep(AGAIN) => {}
        }
    }
}

/// What is asked for, as the admin listener takes it.
fn query(args: &RoomsArgs) -> String {
    let fields = [
        ("phase", args.phase.clone()),
        ("older_than_ms", args.older_than.map(|millis| millis.to_string())),
        ("worker", args.worker.clone()),
    ];
    let given = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let pairs: Vec<String> = given
        .map(|(name, value)| format!("{name}={}", http::escaped(&value)))
        .collect();
    match pairs.as_slice() {
        [] => String::new(),
        pairs => format!("?{}", pairs.join("&")),
    }
}

/// One line a room.
fn table(rows: &[RoomRow], filtered: bool) -> String {
    match (rows, filtered) {
        ([], false) => return "no rooms are open\n".to_owned(),
        ([], true) => {
            return "no rooms are open that are so: innkeeper rooms lists all that are\n".to_owned();
        }
        _ => {}
    }
    let mut lines = vec![
        [
            "ROOM",
            "TRY",
            "PHASE",
            "AGE",
            "TOKENS",
            "DEADLINE",
            "WAITS FOR",
            "HELD BY",
        ]
        .map(str::to_owned),
    ];
    lines.extend(rows.iter().map(|row| {
        let held = row.held_by.iter().map(|holder| match holder.blocks {
            Some(1) => format!("{} (1 block)", holder.worker),
            Some(blocks) => format!("{} ({blocks} blocks)", holder.worker),
            None => holder.worker.clone(),
        });
        [
            row.room.clone(),
            row.generation.to_string(),
            row.phase.clone(),
            seconds(row.age_ms),
            row.delivered_tokens.to_string(),
            row.deadline_in_ms
                .map_or_else(|| "-".to_owned(), |ms| format!("in {}", seconds(ms))),
            row.waits_for.clone(),
            held.collect::<Vec<_>>().join(", "),
        ]
    }));
    let width = |column: usize| {
        lines
            .iter()
            .map(|line| line[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..8).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> = line
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}", width = *width))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn seconds(millis: u64) -> String {
    format!("{}.{} s", millis / 1_000, millis % 1_000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::Holder;

    #[test]
    fn a_room_is_one_line_that_says_what_it_waits_for() {
        let row = RoomRow {
            room: "00000000000000ab-7".to_owned(),
            request_id: "r".to_owned(),
            generation: 2,
            phase: "pulling".to_owned(),
            age_ms: 1_234,
            in_phase_ms: 5,
            waits_for: "decode-0 to pull the KV from prefill-0".to_owned(),
            deadline_in_ms: Some(4_900),
            delivered_tokens: 1,
            held_by: vec![Holder {
                worker: "decode-0".to_owned(),
                generation: 2,
                blocks: Some(3),
                phase: None,
                told_to_close: None,
            }],
            outcome: None,
            reason: None,
            trace_id: None,
        };
        let text = table(&[row], false);
        let line = text.lines().nth(1).expect("a line for the room");
        for part in [
            "00000000000000ab-7",
            "pulling",
            "1.2 s",
            "in 4.9 s",
            "decode-0 to pull the KV",
            "decode-0 (3 blocks)",
        ] {
            assert!(line.contains(part), "{part} is not in {line}");
        }
        assert_eq!(table(&[], false), "no rooms are open\n");
        assert!(table(&[], true).contains("that are so"));
    }

    #[test]
    fn a_filter_is_a_query() {
        let args = |phase: Option<&str>, older_than, worker: Option<&str>| RoomsArgs {
            admin: None,
            watch: false,
            phase: phase.map(str::to_owned),
            older_than,
            worker: worker.map(str::to_owned),
            json: false,
        };
        assert_eq!(query(&args(None, None, None)), "");
        assert_eq!(
            query(&args(Some("queued"), Some(500), Some("a b"))),
            "?phase=queued&older_than_ms=500&worker=a%20b"
        );
    }
}
