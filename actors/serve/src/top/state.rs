//! What `top` knows, and what the user has chosen.

use observe::explain::Account;

use crate::admin::{Overview, RoomRow};

/// How the rooms are sorted.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(super) enum Order {
    /// Longest in its phase first.
    InPhase,
    /// Oldest first.
    Age,
    /// Most tokens first.
    Tokens,
}

/// What a key asks for.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(super) enum Asked {
    /// Nothing but to be drawn.
    Nothing,
    /// The account of the room that is open.
    Account,
    /// The end.
    Leave,
}

/// The state.
#[derive(Debug)]
pub(super) struct State {
    pub(super) overview: Overview,
    /// Why the gateway does not answer; none while it does.
    pub(super) lost: Option<String>,
    pub(super) paused: bool,
    pub(super) order: Order,
    /// The room under the cursor, by its place.
    pub(super) cursor: usize,
    /// The room whose account is shown.
    pub(super) opened: Option<String>,
    /// That account, or why there is none.
    pub(super) account: Option<Result<Account, String>>,
    /// Lines that the account is scrolled by.
    pub(super) scrolled: u16,
    pub(super) help: bool,
}

impl State {
    pub(super) fn new(overview: Overview) -> Self {
        Self {
            overview,
            lost: None,
            paused: false,
            order: Order::InPhase,
            cursor: 0,
            opened: None,
            account: None,
            scrolled: 0,
            help: false,
        }
    }

    /// The gateway has answered.
    pub(super) fn heard(&mut self, overview: Overview) {
        // The cursor stays with its room, if that is still there.
        let under = self.rooms().get(self.cursor).map(|row| row.room.clone());
        self.overview = overview;
        self.lost = None;
        let rooms = self.rooms();
        let place = under.and_then(|under| rooms.iter().position(|row| row.room == under));
        let last = rooms.len().saturating_sub(1);
        self.cursor = place.unwrap_or(self.cursor).min(last);
    }

    /// It has not.
    pub(super) fn lost(&mut self, why: &str) {
        self.lost = Some(why.to_owned());
    }

    /// The oldest rooms, as they are sorted.
    pub(super) fn rooms(&self) -> Vec<&RoomRow> {
        let mut rooms: Vec<&RoomRow> = self.overview.oldest.iter().collect();
        rooms.sort_by_key(|row| {
            std::cmp::Reverse(match self.order {
                Order::InPhase => row.in_phase_ms,
                Order::Age => row.age_ms,
                Order::Tokens => u64::from(row.delivered_tokens),
            })
        });
        rooms
    }
}
