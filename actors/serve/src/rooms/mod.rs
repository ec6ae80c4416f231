//! `innkeeper rooms`: where every request is, or how it ended.

mod table;

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::{Context, Result};
use observe::explain::lasting;
use serde::de::DeserializeOwned;
use tokio::time::sleep;

use crate::admin::{GoneRow, RoomRow, WorkerRow};
use crate::cli::RoomsArgs;
use crate::config::Config;
use crate::http::{Admin, escaped};
use crate::output;

/// Between two looks of `--watch`.
const AGAIN: Duration = Duration::from_secs(1);

/// Clears the screen and what has scrolled away.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";

/// Asks a gateway's admin listener and prints what it says; with `--watch` until it is interrupted, or the gateway does not answer.
pub(crate) async fn run(config: &Config, args: &RoomsArgs) -> Result<()> {
    let admin = Admin::of(config)?;
    if args.json {
        let body = admin.asked(&path(args)).await?;
        return Ok(output::print(&format!("{}\n", String::from_utf8_lossy(&body)))?);
    }
    loop {
        let page = page(&admin, args).await?;
        if !args.watch {
            return Ok(output::print(&page)?);
        }
        let clear = if std::io::stdout().is_terminal() {
            CLEAR
        } else {
            ""
        };
        output::print(&format!("{clear}{page}\n"))?;
        // Interrupted: that is how it ends. The process does nothing else.
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => return Ok(()),
            () = sleep(AGAIN) => {}
        }
    }
}

/// The rooms as a table; of a worker that is asked for, where it can be asked itself.
async fn page(admin: &Admin, args: &RoomsArgs) -> Result<String> {
    let rows: Vec<RoomRow> = asked(admin, &path(args)).await?;
    let mut page = match (rows.as_slice(), args.ended) {
        ([], _) => none(args).to_owned(),
        (rows, false) => table::open(rows),
        (rows, true) => table::ended(rows),
    };
    if let Some(name) = &args.worker {
        let workers: Vec<WorkerRow> = asked(admin, "/workers").await?;
        let gone: Vec<GoneRow> = asked(admin, "/workers/gone").await?;
        page.push_str(&about(name, &workers, &gone));
    }
    Ok(page)
}

async fn asked<T: DeserializeOwned>(admin: &Admin, path: &str) -> Result<T> {
    let body = admin.asked(path).await?;
    serde_json::from_slice(&body).with_context(|| {
        format!("http://{admin}{path} did not answer with what there should be: is it another version?")
    })
}

/// What is asked for, as the admin listener takes it.
fn path(args: &RoomsArgs) -> String {
    let fields = [
        ("phase", args.phase.clone()),
        ("older_than_ms", args.older_than.map(|millis| millis.to_string())),
        ("worker", args.worker.clone()),
        ("outcome", args.outcome.clone()),
        ("reason", args.reason.clone()),
    ];
    let given = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let pairs: Vec<String> = given
        .map(|(name, value)| format!("{name}={}", escaped(&value)))
        .collect();
    let list = if args.ended { "/rooms/ended" } else { "/rooms" };
    match pairs.as_slice() {
        [] => list.to_owned(),
        pairs => format!("{list}?{}", pairs.join("&")),
    }
}

/// That there are none.
fn none(args: &RoomsArgs) -> &'static str {
    match (path(args).contains('?'), args.ended) {
        (false, false) => "no rooms are open\n",
        (false, true) => "no room has ended yet\n",
        (true, false) => "no open room matches\n",
        (true, true) => "no room that ended lately matches\n",
    }
}

/// Where a worker's own view is; or that there is no such worker, how its link ended if it had one, and who there is.
fn about(name: &str, workers: &[WorkerRow], gone: &[GoneRow]) -> String {
    let Some(worker) = workers.iter().find(|worker| worker.name == name) else {
        let mut linked: Vec<&str> = workers.iter().map(|worker| worker.name.as_str()).collect();
        linked.sort_unstable();
        let linked = match linked.is_empty() {
            true => "none is".to_owned(),
            false => format!("linked are {}", linked.join(", ")),
        };
        let ended = gone.iter().find(|gone| gone.name == name).map_or_else(
            || "it never was, as far as is known here".to_owned(),
            |gone| {
                let (ago, why) = (lasting(gone.ended_ms_ago), &gone.why);
                let at = gone
                    .ended_at
                    .as_ref()
                    .map_or_else(String::new, |at| format!(", at {at}"));
                format!("its link ended {ago} ago{at}: {why}")
            },
        );
        return format!("\nno worker {name} is linked now ({linked}); {ended}\n");
    };
    match &worker.admin {
        Some(admin) => format!(
            "\n{name} is linked; what it says itself: http://{admin}/stays (/stays/ended, /health, /metrics)\n"
        ),
        None => format!("\n{name} is linked, and has no admin listener of its own\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> RoomsArgs {
        RoomsArgs {
            admin: None,
            watch: false,
            ended: false,
            phase: None,
            older_than: None,
            worker: None,
            outcome: None,
            reason: None,
            json: false,
        }
    }

    #[test]
    fn what_is_asked_for_is_a_query() {
        assert_eq!(path(&args()), "/rooms");
        let narrowed = RoomsArgs {
            phase: Some("queued".to_owned()),
            older_than: Some(500),
            worker: Some("a b".to_owned()),
            ..args()
        };
        assert_eq!(
            path(&narrowed),
            "/rooms?phase=queued&older_than_ms=500&worker=a%20b"
        );
        let ended = RoomsArgs {
            ended: true,
            outcome: Some("failed".to_owned()),
            reason: Some("no_worker".to_owned()),
            ..args()
        };
        assert_eq!(path(&ended), "/rooms/ended?outcome=failed&reason=no_worker");
    }

    #[test]
    fn that_there_are_none_is_said_plainly() {
        let ended = RoomsArgs {
            ended: true,
            ..args()
        };
        assert_eq!(none(&args()), "no rooms are open\n");
        assert_eq!(none(&ended), "no room has ended yet\n");
        let worker = Some("nobody".to_owned());
        let (open, ended) = (
            RoomsArgs {
                worker: worker.clone(),
                ..args()
            },
            RoomsArgs { worker, ..ended },
        );
        assert_eq!(none(&open), "no open room matches\n");
        assert_eq!(none(&ended), "no room that ended lately matches\n");
    }

    #[test]
    fn a_worker_is_told_with_its_admin_listener_or_that_it_is_not_there() {
        let worker = |name: &str, admin: Option<&str>| WorkerRow {
            name: name.to_owned(),
            admin: admin.map(str::to_owned),
            ..WorkerRow::default()
        };
        let workers = [
            worker("prefill-0", Some("127.0.0.1:40123")),
            worker("decode-0", None),
        ];
        let said = about("prefill-0", &workers, &[]);
        assert!(said.contains("http://127.0.0.1:40123/stays"), "{said}");
        let said = about("decode-0", &workers, &[]);
        assert!(said.contains("no admin listener"), "{said}");
        assert_eq!(
            about("nobody", &workers, &[]),
            "\nno worker nobody is linked now (linked are decode-0, prefill-0); it never was, as far as is known here\n"
        );
        assert_eq!(
            about("nobody", &[], &[]),
            "\nno worker nobody is linked now (none is); it never was, as far as is known here\n"
        );
        let gone = [GoneRow {
            name: "decode-1".to_owned(),
            ended_ms_ago: 65_000,
            ended_at: Some("2026-01-01T00:00:00.000Z".to_owned()),
            why: "silent for 3001 ms".to_owned(),
        }];
        assert_eq!(
            about("decode-1", &[], &gone),
            "\nno worker decode-1 is linked now (none is); its link ended 65.0 s ago, at 2026-01-01T00:00:00.000Z: silent for 3001 ms\n"
        );
    }
}
