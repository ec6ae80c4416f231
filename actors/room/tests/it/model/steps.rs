//! What each action does.

use room::{AbortBy, Input, Route, Time, TransferInput};

use super::laws::Law;
use super::setup::{Action, Setup};
use super::state::State;
use super::worker::Context;

impl State {
    pub(super) fn step(&mut self, setup: &Setup, action: Action) {
        match action {
            Action::Tick => self.tick(setup),
            Action::RoomDue(guest) => {
                self.tell_room(setup, guest, None);
                self.is_done(self.guests[guest].room.poll_timeout());
            }
            Action::HostDue(at) => {
                self.tell_host(setup, at, Context::default(), None);
                self.is_done(self.workers[at].host.poll_timeout());
            }
            Action::Admit {
                guest,
                prefill,
                decode,
            } => self.admit(setup, guest, prefill, decode),
            Action::Abort(guest) => {
                self.left.aborts -= 1;
                let input = Input::Abort(AbortBy::ClientGone);
                self.tell_room(setup, guest, Some(input));
            }
            Action::Read(guest) => {
                let this = &mut self.guests[guest];
                this.read = this.room.delivered();
                let tokens = this.read;
                self.tell_room(setup, guest, Some(Input::Read { tokens }));
            }
            Action::Deliver(way, at) => self.deliver(setup, way, at, 0, false),
            Action::Lose(way, at) => {
                self.left.network -= 1;
                self.lose(way, at);
            }
            Action::Repeat(way, at) => {
                self.left.network -= 1;
                self.deliver(setup, way, at, 0, true);
            }
            Action::Overtake(way, at) => {
                self.left.network -= 1;
                self.deliver(setup, way, at, 1, false);
            }
            Action::Crash(at) => {
                self.left.crashes -= 1;
                self.crash(setup, at);
            }
            Action::Cut(at) => {
                self.left.cuts -= 1;
                self.cut(at);
            }
            Action::OwnerSeesLinkEnd(at) => self.owner_sees_link_end(setup, at),
            Action::HostSeesLinkEnd(at) => self.host_sees_link_end(setup, at),
            Action::LinkUp(at) => self.link_up(at),
            Action::EngineSteps(..)
            | Action::EngineStops(..)
            | Action::Offered(..)
            | Action::Withdrawn(..)
            | Action::BytesLeave(..)
            | Action::BytesLand(..)
            | Action::ReadEnds(..) => self.work(setup, action),
        }
    }

    fn is_done(&mut self, next: Option<Time>) {
        if next.is_some_and(|due| due <= self.now) {
            self.breaks(Law::Undone);
        }
    }

    fn work(&mut self, setup: &Setup, action: Action) {
        match action {
            Action::EngineSteps(at, attempt) => self.engine_steps(setup, at, attempt),
            Action::EngineStops(at, attempt) => self.engine_stops(setup, at, attempt),
            Action::Offered(at, attempt) => {
                self.transfer_says(setup, at, attempt, TransferInput::Offered);
            }
            Action::Withdrawn(at, attempt) => {
                self.transfer_says(setup, at, attempt, TransferInput::Withdrawn);
            }
            Action::BytesLeave(at, attempt) => self.bytes_leave(setup, at, attempt),
            Action::BytesLand(at, attempt) => self.bytes_land(setup, at, attempt),
            Action::ReadEnds(at, attempt, ok) => {
                self.transfer_says(setup, at, attempt, TransferInput::ReadEnded { ok });
            }
            _ => {}
        }
    }

    fn admit(&mut self, setup: &Setup, guest: usize, prefill: usize, decode: usize) {
        let route = Route {
            prefill: self.workers[prefill].node,
            decode: self.workers[decode].node,
        };
        if let Some(generation) = self.guests[guest].seeks.take() {
            let input = Input::Admitted { generation, route };
            self.tell_room(setup, guest, Some(input));
        }
    }
}
