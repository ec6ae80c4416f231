//! `innkeeper explain`: all that is known of a room, for who asks where a request is.

use std::fmt::Write;

use anyhow::{Context, Result};
use observe::explain::{Account, Met, Tone, lasting};

use crate::cli::ExplainArgs;
use crate::config::Config;
use crate::{http, output};

/// Asks a gateway's admin listener and prints what it says.
pub(crate) async fn run(config: &Config, args: &ExplainArgs) -> Result<()> {
    let admin = http::Admin::of(config)?;
    let path = format!("/rooms/{}/explain", http::escaped(args.what.trim()));
    let body = admin.asked(&path).await?;
    if args.json {
        return Ok(output::print(&format!("{}\n", String::from_utf8_lossy(&body)))?);
    }
    let accounts: Vec<Account> = serde_json::from_slice(&body)
        .with_context(|| format!("http://{admin}{path} did not answer with a room's account"))?;
    let texts: Vec<String> = accounts.iter().map(text).collect();
    Ok(output::print(&texts.join("\n"))?)
}

/// An account as a page of text: what is read first comes first.
pub(crate) fn text(account: &Account) -> String {
    let mut page = String::new();
    // Writing to a String does not fail.
    let _ = head(&mut page, account);
    let _ = held(&mut page, account);
    let _ = facts(&mut page, account);
    let _ = history(&mut page, account);
    page
}

fn head(page: &mut String, account: &Account) -> std::fmt::Result {
    writeln!(page, "room {}", account.room)?;
    writeln!(page, "  {}", account.summary)?;
    if let Some(ends) = &account.ends {
        writeln!(
            page,
            "  ends by itself in {}, by {}",
            lasting(ends.in_ms),
            ends.deadline
        )?;
        writeln!(page, "    then {}", ends.then)?;
    }
    for odd in &account.odd {
        writeln!(page, "  ! {odd}")?;
    }
    Ok(())
}

fn held(page: &mut String, account: &Account) -> std::fmt::Result {
    if account.held_by.is_empty() {
        return Ok(());
    }
    writeln!(page, "\nblocks are held by")?;
    for held in &account.held_by {
        let blocks = held.blocks.map_or_else(|| "? blocks".to_owned(), blocks);
        let heard = held.heard_ms_ago.map_or_else(
            || "not linked".to_owned(),
            |ms| format!("heard {} ago", lasting(ms)),
        );
        let phase = held.phase.as_deref().unwrap_or("nothing said");
        write!(
            page,
            "  {:<16} attempt {}  {blocks:<12} {phase:<12} {heard}",
            held.worker, held.attempt
        )?;
        if let Some(told) = held.told_to_close {
            let times = if told == 1 {
                "once".to_owned()
            } else {
                format!("{told} times")
            };
            write!(page, ", told to give them back {times}")?;
        }
        writeln!(page)?;
    }
    Ok(())
}

fn blocks(count: u32) -> String {
    format!("{count} block{}", if count == 1 { "" } else { "s" })
}

/// A worker, and where it is asked itself.
fn met(met: &Met) -> String {
    let name = &met.worker;
    match (&met.admin, met.is_linked) {
        (Some(admin), _) => format!("{name} (http://{admin}/stays)"),
        (None, true) => name.clone(),
        (None, false) => format!("{name} (not linked)"),
    }
}

fn facts(page: &mut String, account: &Account) -> std::fmt::Result {
    let took = &account.took;
    let answer = match account.answers {
        1 => String::new(),
        answers => format!(" (answer {} of {answers})", account.answer),
    };
    writeln!(page, "\nrequest   {}{answer}", account.request_id)?;
    let jaeger = account
        .jaeger
        .as_ref()
        .map(|url| format!("  {url}"))
        .unwrap_or_default();
    writeln!(page, "trace     {}{jaeger}", account.trace_id)?;
    writeln!(page, "model     {}", account.model)?;
    if !account.workers.is_empty() {
        let workers: Vec<String> = account.workers.iter().map(met).collect();
        writeln!(page, "workers   {}", workers.join(", "))?;
    }
    let (prompt, cached) = (account.prompt_tokens, account.cached_tokens);
    let (delivered, most) = (account.delivered_tokens, account.max_tokens);
    writeln!(
        page,
        "tokens    prompt {prompt} ({cached} cached), answer {delivered} of at most {most}"
    )?;
    let first = took.first_token_ms.map_or_else(|| "none yet".to_owned(), lasting);
    writeln!(
        page,
        "times     age {}, at the door {}, queued {}, first token {first}, longest gap {}",
        lasting(account.age_ms),
        lasting(took.prepare_ms),
        lasting(took.queued_ms),
        lasting(took.longest_gap_ms)
    )
}

fn history(page: &mut String, account: &Account) -> std::fmt::Result {
    let left_out = match account.left_out {
        0 => String::new(),
        1 => "; 1 event is not kept".to_owned(),
        events => format!("; {events} events are not kept"),
    };
    writeln!(page, "\nhistory (from its arrival{}{left_out})", clock(account))?;
    let has_attempts = account.attempts > 1;
    for line in &account.history {
        let mark = match line.tone {
            Tone::Step => '>',
            Tone::Note => ' ',
            Tone::Warn => '-',
            Tone::Fault => '!',
        };
        let attempt = match has_attempts {
            true => format!("#{} ", line.attempt),
            false => String::new(),
        };
        let (seconds, micros) = (line.at_us / 1_000_000, line.at_us % 1_000_000);
        writeln!(
            page,
            "  {seconds:>5}.{:04} s {mark} {attempt}{}",
            micros / 100,
            line.what
        )?;
    }
    Ok(())
}

/// When that was, in UTC: what logs say.
fn clock(account: &Account) -> String {
    account.arrived_unix_ms.map_or_else(String::new, |unix_ms| {
        let of_day = unix_ms % 86_400_000;
        let (hours, minutes) = (of_day / 3_600_000, of_day / 60_000 % 60);
        let (seconds, millis) = (of_day / 1_000 % 60, of_day % 1_000);
        format!(" at {hours:02}:{minutes:02}:{seconds:02}.{millis:03} UTC")
    })
}

#[cfg(test)]
mod tests {
    use observe::explain::{Account, Ends, Held, Line, Met, Tone, Took};

    use super::text;

    fn worker(name: &str, is_linked: bool, admin: Option<&str>) -> Met {
        Met {
            worker: name.to_owned(),
            is_linked,
            admin: admin.map(str::to_owned),
        }
    }

    fn account() -> Account {
        Account {
            room: "00000000000000ab-7".to_owned(),
            request_id: "req_1".to_owned(),
            trace_id: "0abc".to_owned(),
            jaeger: Some("http://j/trace/0abc".to_owned()),
            summary: "prefilling for 7.3 s: it waits for prefill-0 to compute the prompt (4 of 10)"
                .to_owned(),
            phase: "prefilling".to_owned(),
            in_phase_ms: Some(7_300),
            age_ms: 8_600,
            waits_for: Some("prefill-0 to compute the prompt (4 of 10)".to_owned()),
            ends: Some(Ends {
                in_ms: 2_700,
                deadline: "the longest time without progress of a prompt".to_owned(),
                then: "the next attempt begins".to_owned(),
            }),
            held_by: vec![Held {
                worker: "prefill-0".to_owned(),
                attempt: 2,
                blocks: Some(7),
                phase: Some("prefilling".to_owned()),
                told_to_close: Some(3),
                heard_ms_ago: Some(100),
            }],
            workers: vec![
                worker("prefill-0", true, Some("127.0.0.1:40123")),
                worker("decode-0", true, None),
                worker("decode-1", false, None),
            ],
            odd: vec!["for 7.0 s prefill-0 has computed nothing of it".to_owned()],
            outcome: None,
            reason: None,
            ended_in: None,
            attempt: 2,
            attempts: 2,
            answer: 1,
            answers: 1,
            model: "m".to_owned(),
            prompt_tokens: 10,
            cached_tokens: 0,
            max_tokens: 5,
            delivered_tokens: 0,
            priority: 1,
            took: Took::default(),
            arrived_unix_ms: Some(86_400_000 + 3_723_004),
            stretches: Vec::new(),
            history: vec![Line {
                at_us: 1_100_700,
                attempt: 2,
                tone: Tone::Fault,
                what: "the attempt failed".to_owned(),
            }],
            left_out: 2,
        }
    }

    #[test]
    fn the_page_says_the_state_first_and_everything_after_it() {
        let page = text(&account());
        let mut last = 0;
        for part in [
            "room 00000000000000ab-7",
            "prefilling for 7.3 s",
            "ends by itself in 2.7 s, by the longest time without progress",
            "then the next attempt begins",
            "! for 7.0 s prefill-0",
            "prefill-0        attempt 2  7 blocks",
            "told to give them back 3 times",
            "request   req_1",
            "http://j/trace/0abc",
            "workers   prefill-0 (http://127.0.0.1:40123/stays), decode-0, decode-1 (not linked)",
            "at 01:02:03.004 UTC; 2 events are not kept)",
            "    1.1007 s ! #2 the attempt failed",
        ] {
            let place = page
                .find(part)
                .unwrap_or_else(|| panic!("no {part:?} in\n{page}"));
            assert!(place >= last, "{part:?} comes too early in\n{page}");
            last = place;
        }
    }
}
