//! The gateway: rooms and the desk, and what they want done.

use room::{Attempt, Command, Input, NodeId, Report, RoomId, Verdict};

use crate::world::{Event, World};

impl World {
    pub(super) fn linked(&self, node: NodeId, link: u64) -> bool {
        self.workers
            .get(&node)
            .is_some_and(|worker| worker.up && worker.link == link)
    }

    pub(super) fn room_report(&mut self, worker: NodeId, attempt: Attempt, report: Report) {
        let input = Input::FromWorker {
            worker,
            generation: attempt.generation,
            report,
        };
        self.room_input(attempt.room, input);
    }

    pub(super) fn room_input(&mut self, room: RoomId, input: Input) {
        let index = usize::try_from(room.seq).unwrap();
        self.guests[index].room.handle_input(self.now, input);
        self.perform(index);
    }

    /// A client takes some more, until its answer has ended.
    pub(super) fn reads(&mut self, index: usize) {
        let Some(reader) = self.reader else { return };
        let guest = &mut self.guests[index];
        if guest.answers.is_empty() {
            guest.read = guest.room.delivered().min(guest.read + reader.tokens);
            let (room, tokens) = (guest.room.id(), guest.read);
            self.room_input(room, Input::Read { tokens });
            self.after(reader.pause, Event::Reads(index));
        }
    }

    pub(super) fn perform(&mut self, index: usize) {
        while let Some(command) = self.guests[index].room.poll_command() {
            let id = self.guests[index].room.id();
            match command {
                Command::Enqueue(bid) => {
                    let generation = bid.attempt.generation;
                    if let Err(failure) = self.desk.enqueue(bid) {
                        self.guests[index]
                            .room
                            .handle_input(self.now, Input::NotAdmitted { generation, failure });
                    }
                }
                Command::LeaveQueue { attempt } => self.desk.leave(attempt),
                Command::GiveBack {
                    attempt,
                    worker,
                    credit,
                } => self.desk.give_back(attempt, worker, credit),
                Command::Send { to, attempt, order } => self.send_order(to, attempt, order),
                Command::Deliver { .. } => {
                    let guest = &mut self.guests[index];
                    assert!(guest.answers.is_empty(), "{id}: late tokens");
                    guest.most_unread = guest.most_unread.max(guest.room.delivered() - guest.read);
                }
                Command::Fence { worker } => self.cut(worker),
                Command::Answer(outcome) => self.guests[index].answers.push((self.now, outcome)),
                Command::End => self.guests[index].ended = true,
            }
        }
        while self.guests[index].room.poll_event().is_some() {}
        self.desk_decides();
    }

    pub(super) fn desk_decides(&mut self) {
        while let Some(verdict) = self.desk.poll_verdict(self.now) {
            let (attempt, input) = match verdict {
                Verdict::Granted { attempt, route } => (
                    attempt,
                    Input::Admitted {
                        generation: attempt.generation,
                        route,
                    },
                ),
                Verdict::Refused { attempt, failure } => (
                    attempt,
                    Input::NotAdmitted {
                        generation: attempt.generation,
                        failure,
                    },
                ),
            };
            self.room_input(attempt.room, input);
        }
    }
}
