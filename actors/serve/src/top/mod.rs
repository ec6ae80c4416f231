//! `innkeeper top`: a cluster, live, in a terminal.
//!
//! ```text
//!   asks /overview once a second ──▶ State ──▶ view (a pure function of it) ──▶ terminal
//!                          keys ───▶
//! ```

mod keys;
mod state;
mod view;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use observe::explain::Account;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

use crate::admin::Overview;
use crate::config::Config;
use crate::http::{Admin, escaped};
use state::{Asked, State};

/// Between two questions.
const AGAIN: Duration = Duration::from_secs(1);

/// For how long a key is waited for at a time: the terminal's reader looks that often whether the program ends.
const KEY_PATIENCE: Duration = Duration::from_millis(100);

/// Keys that may wait.
const KEYS: usize = 16;

/// Runs until the user leaves.
pub(crate) async fn run(config: &Config) -> Result<()> {
    let admin = Admin::of(config)?;
    // What is wrong with the address is said before the screen is taken.
    let first = overview(&admin).await?;
    if !std::io::IsTerminal::is_terminal(&std::io::stdout()) {
        bail!("top draws on a terminal: for a file or a pipe there is `innkeeper rooms --json`");
    }
    let mut terminal = ratatui::try_init().context("the terminal cannot be drawn on")?;
    let ended = watch(&mut terminal, &admin, State::new(first)).await;
    ratatui::restore();
    ended
}

async fn overview(admin: &Admin) -> Result<Overview> {
    let body = admin.asked("/overview").await?;
    serde_json::from_slice(&body).with_context(|| {
        format!("http://{admin}/overview did not answer with an overview: is it another version?")
    })
}

async fn account(admin: &Admin, room: &str) -> Result<Account> {
    let body = admin.asked(&format!("/rooms/{}/explain", escaped(room))).await?;
    let accounts: Vec<Account> = serde_json::from_slice(&body).context("no account")?;
    accounts.into_iter().next_back().context("no account")
}

async fn watch(terminal: &mut DefaultTerminal, admin: &Admin, mut state: State) -> Result<()> {
    let (sender, mut keys) = tokio::sync::mpsc::channel(KEYS);
    // Ends when nobody takes keys any more: it looks between two of its short waits.
    let reader = spawn_blocking(move || {
        while !sender.is_closed() {
            match event::poll(KEY_PATIENCE) {
                Ok(true) => {
                    if let Ok(event) = event::read()
                        && sender.blocking_send(event).is_err()
                    {
                        return;
                    }
                }
                Ok(false) => {}
                Err(_) => return,
            }
        }
    });
    let mut next = Instant::now() + AGAIN;
    loop {
        terminal.draw(|frame| view::draw(frame, &state))?;
        tokio::select! {
            biased;
            key = keys.recv() => match key {
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                    match keys::pressed(&mut state, key) {
                        Asked::Leave => break,
                        Asked::Account => refresh(admin, &mut state).await,
                        Asked::Nothing => {}
                    }
                }
                Some(_) => {}
                None => bail!("the terminal is gone"),
            },
            () = sleep_until(next) => {
                next = Instant::now() + AGAIN;
                if !state.paused {
                    match overview(admin).await {
                        Ok(overview) => state.heard(overview),
                        Err(error) => state.lost(&format!("{error:#}")),
                    }
                }
                refresh(admin, &mut state).await;
            }
        }
    }
    drop(keys);
    // It returns within its patience.
    Ok(reader.await?)
}

/// Asks for the room that is open, if one is.
async fn refresh(admin: &Admin, state: &mut State) {
    if let Some(room) = state.opened.clone() {
        state.account = Some(account(admin, &room).await.map_err(|error| format!("{error:#}")));
    }
}
