//! What a room has to say, until the caller takes it. The caller empties it after every call.

use std::collections::VecDeque;

use crate::command::Command;
use crate::event::Event;

#[derive(Clone, Debug, Default)]
pub(super) struct Outbox {
    pub(super) commands: VecDeque<Command>,
    pub(super) events: VecDeque<Event>,
}

impl Outbox {
    pub(super) fn command(&mut self, command: Command) {
        self.commands.push_back(command);
    }

    pub(super) fn event(&mut self, event: Event) {
        self.events.push_back(event);
    }
}
