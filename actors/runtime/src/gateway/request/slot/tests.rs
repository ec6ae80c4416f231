//! The content of the current attempt is nobody else's.

use std::sync::Arc;

use room::{
    Attempt, AttemptError, Command, Generation, Input, Limits, NodeId, Order, Priority, Report, Room, RoomId,
    RoomSpec, Route, Span, Time,
};
use wire::{Ticket, ToWorker, TokenOut};

use super::Slot;
use crate::gateway::directory::News;
use crate::testing::job;

const PREFILL: NodeId = NodeId(1);
const DECODE: NodeId = NodeId(2);
const NOW: Time = Time { micros: 0 };

fn slot() -> Slot {
    let spec = RoomSpec {
        positions: 3,
        max_new: 9,
        deadline: NOW + Span::from_millis(60_000),
        priority: Priority(0),
        share: room::Share::default(),
    };
    let id = RoomId {
        gateway: NodeId(9),
        seq: 1,
    };
    let job = job(vec![5, 6, 7], 9);
    Slot::new(
        Room::new(id, spec, &Limits::default(), NOW),
        Some(Arc::new(job)),
        0,
    )
}

impl Slot {
    /// Feeds an input, carries out what follows, and gives the frames that were sent and the tokens that were delivered.
    fn feed_one(&mut self, input: Input) -> (Vec<ToWorker>, Vec<u32>) {
        self.room.handle_input(NOW, input);
        let (mut frames, mut delivered) = (Vec::new(), Vec::new());
        while let Some(command) = self.room.poll_command() {
            match command {
                Command::Send { attempt, order, .. } => frames.extend(self.frame(attempt, order, NOW)),
                Command::Deliver { skip, take } => {
                    delivered.extend(self.deliver(skip, take).iter().map(|out| out.token));
                }
                _ => {}
            }
        }
        (frames, delivered)
    }

    fn say(&mut self, worker: NodeId, generation: u32, news: News) -> (Vec<ToWorker>, Vec<u32>) {
        let generation = Generation(generation);
        let (mut frames, mut delivered) = (Vec::new(), Vec::new());
        for report in self.reports(worker, generation, news) {
            let input = Input::FromWorker {
                worker,
                generation,
                report,
            };
            let (more_frames, more_tokens) = self.feed_one(input);
            frames.extend(more_frames);
            delivered.extend(more_tokens);
        }
        (frames, delivered)
    }

    /// Brings a fresh attempt to where the prompt is computed.
    fn prefilling(&mut self, generation: u32) {
        let route = Route {
            prefill: PREFILL,
            decode: DECODE,
        };
        self.feed_one(Input::Admitted {
            generation: Generation(generation),
            route,
        });
        self.say(DECODE, generation, reserved(0));
    }
}

fn reserved(cached_tokens: u32) -> News {
    News::Reserved {
        cached_blocks: 0,
        cached_tokens,
    }
}

fn tokens(from: u32, tokens: &[u32]) -> News {
    let out = |token: &u32| TokenOut {
        token: *token,
        logprobs: None,
    };
    News::Tokens {
        from,
        tokens: tokens.iter().map(out).collect(),
        finish: None,
    }
}

fn ticket(mark: u8) -> Ticket {
    Ticket {
        capability: [mark; 16],
        source: vec![mark],
        blocks: 1,
        positions: 3,
    }
}

/// What comes between the first token and its publication: none of it is in the order to pull.
fn check(stray: impl FnOnce(&mut Slot)) {
    let mut slot = slot();
    slot.prefilling(1);
    slot.feed_one(Input::FromWorker {
        worker: PREFILL,
        generation: Generation(1),
        report: Report::Failed(AttemptError::EngineFailed),
    });
    slot.prefilling(2);
    slot.say(PREFILL, 2, News::Published(ticket(2)));
    stray(&mut slot);
    let (frames, delivered) = slot.say(PREFILL, 2, tokens(0, &[70]));
    assert_eq!(delivered, [70]);
    let first = vec![TokenOut {
        token: 70,
        logprobs: None,
    }];
    let key = crate::convert::room_key(Attempt {
        room: slot.room.id(),
        generation: Generation(2),
    });
    let ticket = ticket(2);
    assert_eq!(frames, [ToWorker::Pull { key, ticket, first }]);
}

#[test]
fn of_the_current_attempt() {
    check(|_| {});
}

#[test]
fn a_ticket_of_an_older_attempt_replaces_none() {
    check(|slot| assert_eq!(slot.say(PREFILL, 1, News::Published(ticket(1))), (vec![], vec![])));
}

#[test]
fn a_ticket_of_the_wrong_worker_replaces_none() {
    check(|slot| assert_eq!(slot.say(DECODE, 2, News::Published(ticket(3))), (vec![], vec![])));
}

#[test]
fn tokens_of_an_older_attempt_are_not_delivered() {
    check(|slot| assert_eq!(slot.say(PREFILL, 1, tokens(0, &[71])), (vec![], vec![])));
}

#[test]
fn an_order_without_its_content_is_no_frame() {
    let mut slot = slot();
    let attempt = Attempt {
        room: slot.room.id(),
        generation: Generation(1),
    };
    assert_eq!(slot.frame(attempt, Order::Pull { from: PREFILL }, NOW), None);
}

/// What is known of the cache after these words of (worker, generation, tokens), said in the first attempt's prefill.
fn check_found(words: &[(NodeId, u32, u32)], found: Option<u32>) {
    let mut slot = slot();
    slot.prefilling(1);
    assert_eq!(slot.found(), None, "what decode has is computed all the same");
    for (worker, generation, tokens) in words {
        slot.say(*worker, *generation, reserved(*tokens));
    }
    assert_eq!(slot.found(), found, "{words:?}");
}

#[test]
fn of_the_cache_counts_what_the_first_computing_worker_found() {
    check_found(&[(PREFILL, 1, 2)], Some(2));
    check_found(&[(PREFILL, 1, 0), (PREFILL, 1, 2)], Some(0));
    check_found(&[(DECODE, 1, 2)], None);
    check_found(&[(PREFILL, 2, 2)], None);
}

#[test]
fn no_more_is_found_than_the_prompt_has() {
    check_found(&[(PREFILL, 1, u32::MAX)], Some(3));
}
