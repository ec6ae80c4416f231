//! `innkeeper drain`, `undrain` and `role`: a worker is kept from new rooms, or gets another role. A gateway passes on what is wanted; the
//! worker does it, and what is asked for here is what it says of itself.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use crate::admin::{RoomRow, WorkerRow};
use crate::cli::{DrainArgs, RoleArgs, UndrainArgs};
use crate::compose::wire_role;
use crate::config::Config;
use crate::http::{Admin, escaped};
use crate::output;

/// Between two looks.
const AGAIN: Duration = Duration::from_millis(200);

/// How long the worker's next report may take: several heartbeats.
const REPORT: Duration = Duration::from_secs(3);

/// How long a worker may take to come back in another role, when nothing is left there: loading its weights anew, if that has to be.
const BACK: Duration = Duration::from_secs(120);

/// Rooms that are named.
const NAMED: usize = 8;

/// Drains a worker, says what is still there, and waits if that is wanted.
pub(crate) async fn drain(config: &Config, args: &DrainArgs) -> Result<()> {
    let (admin, name) = (Admin::of(config)?, &*args.worker);
    let said = admin.told(&path(name, "drain")).await?;
    output::print(&format!("{said}\n"))?;
    let told = Instant::now();
    let until = told + args.wait.map_or(Duration::ZERO, Duration::from_millis);
    loop {
        let Some(worker) = find(&admin, name).await? else {
            return Ok(output::print(&format!("{name} has left\n"))?);
        };
        let heard = is_heard(&worker, told.elapsed());
        if heard && left(&worker).is_none() {
            return Ok(output::print(&format!("nothing is left at {name}\n"))?);
        }
        // Somebody else wants it otherwise.
        ensure!(
            worker.draining,
            "{name} takes new rooms again: somebody has undrained it"
        );
        let over = Instant::now() >= until;
        if over && heard {
            let rest = format!("still at {name}: {}", rest(&admin, &worker).await?);
            ensure!(args.wait.is_none(), rest);
            return Ok(output::print(&format!("{rest}\n"))?);
        }
        ensure!(
            !over || told.elapsed() < REPORT,
            "{name} has not reported for {} ms: is it well?",
            worker.heard_ms_ago.unwrap_or_default()
        );
        sleep(AGAIN).await;
    }
}

/// Lets it take rooms again.
pub(crate) async fn undrain(config: &Config, args: &UndrainArgs) -> Result<()> {
    let (admin, name) = (Admin::of(config)?, &*args.worker);
    let said = admin.told(&path(name, "undrain")).await?;
    let told = Instant::now();
    while find(&admin, name).await?.is_some_and(|worker| worker.draining) {
        ensure!(
            told.elapsed() < REPORT,
            "{name} still says that it takes no rooms: it is about to leave, or is drained again"
        );
        sleep(AGAIN).await;
    }
    Ok(output::print(&format!("{said}\n"))?)
}

/// Gives it another role, and waits until it is back.
pub(crate) async fn role(config: &Config, args: &RoleArgs) -> Result<()> {
    let (admin, name) = (Admin::of(config)?, &*args.worker);
    let role = wire_role(args.role).name();
    let before = find(&admin, name).await?;
    if before.as_ref().is_some_and(|worker| worker.role == role) {
        return Ok(output::print(&format!("{name} is {role} already\n"))?);
    }
    let path = format!("{}?to={role}&within_ms={}", path(name, "role"), args.wait);
    let said = admin.told(&path).await?;
    output::print(&format!("{said}\n"))?;
    let until = Instant::now() + Duration::from_millis(args.wait) + BACK;
    loop {
        let now = find(&admin, name).await?;
        if let Some(worker) = now.filter(|worker| worker.role == role) {
            let drained = if worker.draining {
                ", drained as before"
            } else {
                ""
            };
            return Ok(output::print(&format!(
                "{name} is {role} now, as {}{drained}\n",
                worker.node
            ))?);
        }
        if Instant::now() >= until {
            bail!("{name} has not come back as {role}: what does its log say?");
        }
        sleep(AGAIN).await;
    }
}

fn path(worker: &str, verb: &str) -> String {
    format!("/workers/{}/{verb}", escaped(worker))
}

async fn asked<T: DeserializeOwned>(admin: &Admin, path: &str) -> Result<T> {
    let body = admin.asked(path).await?;
    serde_json::from_slice(&body).with_context(|| {
        format!("http://{admin}{path} did not answer with what there should be: is it another version?")
    })
}

/// The worker of that name, if one is linked with the gateway that is asked.
async fn find(admin: &Admin, name: &str) -> Result<Option<WorkerRow>> {
    let workers: Vec<WorkerRow> = asked(admin, "/workers").await?;
    Ok(workers.into_iter().find(|worker| worker.name == name))
}

/// Whether its last report is younger than so long: it knows then what came before.
fn is_heard(worker: &WorkerRow, ago: Duration) -> bool {
    let heard_ms_ago = worker.heard_ms_ago.map(u128::from);
    heard_ms_ago.is_some_and(|heard_ms_ago| heard_ms_ago < ago.as_millis())
}

/// What a worker has, for all gateways, as it says itself; none if it has nothing.
fn left(worker: &WorkerRow) -> Option<String> {
    let (leased, pinned, slots) = (worker.blocks_leased, worker.blocks_quarantined, worker.slots_used);
    (leased + pinned + slots > 0 || worker.rooms_held > 0)
        .then(|| format!("{leased} blocks leased, {pinned} in quarantine, {slots} slots in use"))
}

/// The same, and the rooms of the gateway that is asked.
async fn rest(admin: &Admin, worker: &WorkerRow) -> Result<String> {
    let rooms: Vec<RoomRow> = asked(admin, &format!("/rooms?worker={}", escaped(&worker.name))).await?;
    Ok(listed(worker, &rooms))
}

fn listed(worker: &WorkerRow, rooms: &[RoomRow]) -> String {
    let here = |room: &&RoomRow| room.held_by.iter().any(|holder| holder.worker == worker.name);
    let names: Vec<&str> = rooms.iter().filter(here).map(|room| &*room.room).collect();
    let more = names.len().saturating_sub(NAMED);
    let mut named = names[..names.len() - more].join(", ");
    if more > 0 {
        named.push_str(&format!(" and {more} more"));
    }
    let blocks = left(worker).unwrap_or_else(|| "nothing".to_owned());
    match names.is_empty() {
        true => format!("{blocks}, for rooms of other gateways"),
        false => format!("{blocks}; of this gateway's rooms: {named}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::Holder;

    fn worker(leased: u32, quarantined: u32, rooms: usize) -> WorkerRow {
        WorkerRow {
            name: "decode-0".to_owned(),
            blocks_leased: leased,
            blocks_quarantined: quarantined,
            rooms_held: rooms,
            heard_ms_ago: Some(100),
            ..WorkerRow::default()
        }
    }

    fn room(name: &str, worker: &str) -> RoomRow {
        RoomRow {
            room: name.to_owned(),
            held_by: vec![Holder {
                worker: worker.to_owned(),
                generation: 1,
                blocks: None,
                phase: None,
                told_to_close: None,
            }],
            ..RoomRow::default()
        }
    }

    #[test]
    fn what_is_left_is_what_the_worker_says_and_no_older_than_the_order() {
        assert_eq!(left(&worker(0, 0, 0)), None);
        for some in [worker(1, 0, 0), worker(0, 1, 0), worker(0, 0, 1)] {
            assert!(left(&some).is_some(), "{some:?}");
        }
        assert!(is_heard(&worker(0, 0, 0), Duration::from_millis(101)));
        assert!(!is_heard(&worker(0, 0, 0), Duration::from_millis(100)));
        let silent = WorkerRow {
            heard_ms_ago: None,
            ..worker(0, 0, 0)
        };
        assert!(!is_heard(&silent, Duration::from_secs(60)));
    }

    #[test]
    fn the_rooms_that_are_there_are_named_and_not_all_of_many() {
        let rooms: Vec<RoomRow> = (0..10).map(|n| room(&format!("r-{n}"), "decode-0")).collect();
        let said = listed(&worker(7, 1, 10), &rooms);
        assert!(said.starts_with("7 blocks leased, 1 in quarantine"), "{said}");
        assert!(
            said.contains("r-0, r-1") && said.ends_with("r-7 and 2 more"),
            "{said}"
        );
        let said = listed(&worker(7, 0, 0), &[room("r-9", "prefill-0")]);
        assert!(said.ends_with("for rooms of other gateways"), "{said}");
    }

    #[test]
    fn a_name_is_a_part_of_a_path() {
        assert_eq!(path("decode-0", "drain"), "/workers/decode-0/drain");
        assert_eq!(path("a/b", "role"), "/workers/a%2Fb/role");
    }
}
