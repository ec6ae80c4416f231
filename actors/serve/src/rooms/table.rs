//! Rooms as lines of a terminal.

use observe::explain::lasting;

use crate::admin::{Holder, RoomRow};

/// Those that are open.
pub(super) fn open(rows: &[RoomRow]) -> String {
    let head = [
        "ROOM",
        "TRY",
        "PHASE",
        "AGE",
        "TOKENS",
        "DEADLINE",
        "WAITS FOR",
        "HELD BY",
    ];
    let line = |row: &RoomRow| {
        [
            row.room.clone(),
            row.generation.to_string(),
            row.phase.clone(),
            lasting(row.age_ms),
            row.delivered_tokens.to_string(),
            row.deadline_in_ms
                .map_or_else(|| "-".to_owned(), |ms| format!("in {}", lasting(ms))),
            row.waits_for.clone(),
            held(row),
        ]
    };
    aligned(head, rows.iter().map(line))
}

/// Those that ended.
pub(super) fn ended(rows: &[RoomRow]) -> String {
    let head = [
        "ROOM", "REQUEST", "ENDED", "OUTCOME", "LASTED", "TRIES", "TOKENS", "WORKERS", "TRACE",
    ];
    let line = |row: &RoomRow| {
        let (outcome, reason) = (row.outcome.as_deref(), row.reason.as_deref());
        [
            row.room.clone(),
            row.request_id.clone(),
            when(row),
            format!("{} ({})", outcome.unwrap_or("-"), reason.unwrap_or("-")),
            lasting(row.age_ms),
            row.generation.to_string(),
            row.delivered_tokens.to_string(),
            listed(&row.workers),
            row.trace_id.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    };
    aligned(head, rows.iter().map(line))
}

/// Who may hold blocks, for which attempt where there were several; and who was told of it in an earlier attempt, and holds nothing any more.
fn held(row: &RoomRow) -> String {
    let holder = |holder: &Holder| {
        let attempt = match row.generation {
            1 => String::new(),
            _ => format!(" #{}", holder.generation),
        };
        match holder.blocks {
            Some(1) => format!("{}{attempt} (1 block)", holder.worker),
            Some(blocks) => format!("{}{attempt} ({blocks} blocks)", holder.worker),
            None => format!("{}{attempt}", holder.worker),
        }
    };
    let holders: Vec<String> = row.held_by.iter().map(holder).collect();
    let is_holder = |worker: &&String| row.held_by.iter().any(|holder| holder.worker == **worker);
    let before: Vec<String> = row
        .workers
        .iter()
        .filter(|worker| !is_holder(worker))
        .cloned()
        .collect();
    match before.is_empty() {
        true => holders.join(", "),
        false => format!("{}; before: {}", listed(&holders), before.join(", ")),
    }
}

fn listed(words: &[String]) -> String {
    match words.is_empty() {
        true => "-".to_owned(),
        false => words.join(", "),
    }
}

/// How long ago, and what the clock showed then: what alerts and logs are compared with.
fn when(row: &RoomRow) -> String {
    let ago = row
        .ended_ms_ago
        .map_or_else(|| "-".to_owned(), |ms| format!("{} ago", lasting(ms)));
    let at = row.ended_at.as_deref().and_then(|at| at.get(11..19));
    match at {
        Some(at) => format!("{ago}, {at} UTC"),
        None => ago,
    }
}

/// Columns as wide as their widest cell.
fn aligned<const N: usize>(head: [&str; N], lines: impl Iterator<Item = [String; N]>) -> String {
    let lines: Vec<[String; N]> = [head.map(str::to_owned)].into_iter().chain(lines).collect();
    let width = |column: usize| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> = line
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{ended, held, open};
    use crate::admin::{Holder, RoomRow, samples};

    fn holder(worker: &str, generation: u32, blocks: Option<u32>) -> Holder {
        Holder {
            worker: worker.to_owned(),
            generation,
            blocks,
            phase: None,
            told_to_close: None,
        }
    }

    #[track_caller]
    fn check(line: &str, parts: &[&str]) {
        for part in parts {
            assert!(line.contains(part), "{part} is not in {line}");
        }
    }

    #[test]
    fn an_open_room_is_one_line_that_says_what_it_waits_for() {
        let row = RoomRow {
            age_ms: 1_234,
            waits_for: "decode-0 to pull the KV from prefill-0".to_owned(),
            deadline_in_ms: Some(4_900),
            held_by: vec![holder("decode-0", 1, Some(3))],
            ..samples::open("00000000000000ab-7", "pulling", &["decode-0"])
        };
        let text = open(&[row]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        let parts = [
            "00000000000000ab-7",
            "pulling",
            "1.2 s",
            "in 4.9 s",
            "decode-0 to pull the KV",
        ];
        check(lines[1], &parts);
        assert!(lines[1].ends_with("decode-0 (3 blocks)"), "{text}");
    }

    #[test]
    fn who_holds_blocks_is_told_with_the_attempt_and_who_did_before() {
        let mut row = samples::open("1", "decoding", &["p0", "d0", "d1"]);
        row.held_by = vec![
            holder("p0", 1, Some(1)),
            holder("p0", 2, Some(1)),
            holder("d1", 2, None),
        ];
        row.generation = 2;
        assert_eq!(held(&row), "p0 #1 (1 block), p0 #2 (1 block), d1 #2; before: d0");
        row.held_by.clear();
        assert_eq!(held(&row), "-; before: p0, d0, d1");
        row.workers.clear();
        assert_eq!(held(&row), "");
    }

    #[test]
    fn an_ended_room_is_one_line_that_says_when_and_how_and_where() {
        let row = RoomRow {
            generation: 2,
            delivered_tokens: 41,
            trace_id: Some("0abc".to_owned()),
            ..samples::ended("1", "decoding", ("failed", "attempts_worker_lost"), &["p0", "d0"])
        };
        let never_told = samples::ended("2", "queued", ("failed", "no_worker"), &[]);
        let text = ended(&[row, never_told]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        let parts = [
            "req_1",
            "2.0 s ago, 00:00:00 UTC",
            "failed (attempts_worker_lost)",
            "1.0 s",
            " 2 ",
            " 41 ",
            "p0, d0",
        ];
        check(lines[1], &parts);
        assert!(lines[1].ends_with("0abc"), "{text}");
        check(lines[2], &["failed (no_worker)", "  -  "]);
    }
}
