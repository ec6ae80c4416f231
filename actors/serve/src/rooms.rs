//! `innkeeper rooms`: where every request is.

use anyhow::{Context, Result, ensure};

use crate::admin::RoomRow;
use crate::cli::RoomsArgs;
use crate::config::Config;
use crate::{http, output};

/// Asks a gateway's admin listener and prints what it says.
pub(crate) async fn run(config: &Config, args: &RoomsArgs) -> Result<()> {
    let admin = config.admin.listen;
    let (status, body) = http::get(admin, "/rooms").await.with_context(|| {
        format!("no gateway's admin listener answers on {admin}: give its address with --admin")
    })?;
    ensure!(
        status == 200,
        "http://{admin}/rooms answered {status}: is that a gateway's admin listener?"
    );
    if args.json {
        return Ok(output::print(&format!("{}\n", String::from_utf8_lossy(&body)))?);
    }
    let rows: Vec<RoomRow> = serde_json::from_slice(&body)
        .with_context(|| format!("http://{admin}/rooms did not answer with rooms"))?;
    Ok(output::print(&table(&rows))?)
}

/// One line a room.
fn table(rows: &[RoomRow]) -> String {
    if rows.is_empty() {
        return "no rooms are open\n".to_owned();
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
        let text = table(&[row]);
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
        assert_eq!(table(&[]), "no rooms are open\n");
    }
}
