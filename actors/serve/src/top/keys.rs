//! What keys do.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::state::{Asked, Order, State};

/// What can be pressed, for people.
pub(super) const HELP: &[(&str, &str)] = &[
    ("Up Down", "the next room"),
    ("Enter", "all of that room"),
    ("s", "sort by time in phase, age, tokens"),
    ("p", "pause"),
    ("Esc", "close"),
    ("q", "leave"),
];

/// A page of an account, in lines.
const PAGE: u16 = 10;

/// A key was pressed.
pub(super) fn pressed(state: &mut State, key: KeyEvent) -> Asked {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Asked::Leave,
            _ => Asked::Nothing,
        };
    }
    match key.code {
        KeyCode::Char('q') => return Asked::Leave,
        KeyCode::Char('?' | 'h') => state.help = !state.help,
        KeyCode::Esc if state.help => state.help = false,
        KeyCode::Char('p' | ' ') => state.paused = !state.paused,
        _ if state.opened.is_some() => in_account(state, key.code),
        KeyCode::Esc => return Asked::Leave,
        code => return in_list(state, code),
    }
    Asked::Nothing
}

fn in_account(state: &mut State, code: KeyCode) {
    let by = |state: &mut State, lines: i32| {
        let lines = i32::from(state.scrolled).saturating_add(lines).max(0);
        state.scrolled = u16::try_from(lines).unwrap_or(u16::MAX);
    };
    match code {
        KeyCode::Esc | KeyCode::Enter | KeyCode::Backspace | KeyCode::Left => {
            state.opened = None;
            state.account = None;
        }
        KeyCode::Up | KeyCode::Char('k') => by(state, -1),
        KeyCode::Down | KeyCode::Char('j') => by(state, 1),
        KeyCode::PageUp => by(state, -i32::from(PAGE)),
        KeyCode::PageDown => by(state, PAGE.into()),
        KeyCode::Home => state.scrolled = 0,
        _ => {}
    }
}

fn in_list(state: &mut State, code: KeyCode) -> Asked {
    let last = state.rooms().len().saturating_sub(1);
    match code {
        KeyCode::Up | KeyCode::Char('k') => state.cursor = state.cursor.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => state.cursor = (state.cursor + 1).min(last),
        KeyCode::Home => state.cursor = 0,
        KeyCode::End => state.cursor = last,
        KeyCode::Char('s') => {
            state.order = match state.order {
                Order::InPhase => Order::Age,
                Order::Age => Order::Tokens,
                Order::Tokens => Order::InPhase,
            };
        }
        KeyCode::Enter | KeyCode::Right => {
            state.opened = state.rooms().get(state.cursor).map(|row| row.room.clone());
            state.scrolled = 0;
            return Asked::Account;
        }
        _ => {}
    }
    Asked::Nothing
}
