//! One room with its content: the tokens delivered, the ticket, the tokens of the report being handled.

use std::sync::Arc;

use room::{Attempt, Order, Report, Room, Time};
use wire::{Ticket, ToWorker, TokenOut};

use crate::convert;
use crate::gateway::directory::News;
use crate::gateway::job::Job;

/// A room and what it does not look at.
pub(super) struct Slot {
    pub(super) room: Room,
    /// None for a room taken over from an owner that died: only its leases are left to end.
    job: Option<Arc<Job>>,
    index: usize,
    /// The answer as delivered, over all attempts.
    answer: Vec<u32>,
    /// How much of it was delivered when the current attempt began.
    delivered_before: usize,
    /// What prefill published in the current attempt.
    ticket: Option<Ticket>,
    /// Tokens of the report being handled.
    batch: Vec<TokenOut>,
    /// Leading blocks that decode had in its cache at the last grant.
    pub(super) cached_blocks: u32,
}

impl Slot {
    pub(super) fn new(room: Room, job: Option<Arc<Job>>, index: usize) -> Self {
        Self {
            room,
            job,
            index,
            answer: Vec::new(),
            delivered_before: 0,
            ticket: None,
            batch: Vec::new(),
            cached_blocks: 0,
        }
    }

    /// Tokens delivered.
    pub(super) fn delivered(&self) -> u32 {
        convert::count(self.answer.len())
    }

    /// Keeps the content of a worker's news and gives the reports that the room decides on.
    pub(super) fn reports(&mut self, news: News) -> Vec<Report> {
        match news {
            News::Reserved { cached_blocks } => {
                self.cached_blocks = cached_blocks;
                vec![Report::Reserved { cached_blocks }]
            }
            News::Refused(why) => vec![Report::Refused(why)],
            News::Progress { positions } => vec![Report::Progress { positions }],
            News::Tokens { from, tokens, finish } => {
                let count = convert::count(tokens.len());
                self.batch = tokens;
                let tokens = (count > 0).then_some(Report::Tokens { from, count });
                let total = from.saturating_add(count);
                let finished = finish.map(|finish| Report::Finished { finish, total });
                tokens.into_iter().chain(finished).collect()
            }
            News::Published(ticket) => {
                self.ticket = Some(ticket);
                vec![Report::Published]
            }
            News::Pulled => vec![Report::Pulled],
            News::Failed(why) => vec![Report::Failed(why)],
            News::Closed => vec![Report::Closed],
            News::Held => vec![Report::Held],
            News::NotHeld => vec![Report::NotHeld],
        }
    }

    /// The tokens of the report being handled that the client has not seen.
    pub(super) fn deliver(&mut self, skip: u32, take: u32) -> Vec<TokenOut> {
        let tokens: Vec<TokenOut> = std::mem::take(&mut self.batch)
            .into_iter()
            .skip(skip as usize)
            .take(take as usize)
            .collect();
        self.answer.extend(tokens.iter().map(|out| out.token));
        tokens
    }

    /// The frame for an order; none if its content is missing, which the room is then told as a failure of the worker's.
    pub(super) fn frame(&mut self, attempt: Attempt, order: Order, now: Time) -> Option<ToWorker> {
        let key = convert::room_key(attempt);
        match order {
            Order::Reserve(work) => {
                self.delivered_before = self.answer.len();
                self.ticket = None;
                let deadline_ms = convert::remaining_ms(work.deadline, now);
                Some(ToWorker::Reserve {
                    key,
                    work: self.work()?,
                    deadline_ms,
                })
            }
            Order::Prefill { work, .. } => {
                let deadline_ms = convert::remaining_ms(work.deadline, now);
                Some(ToWorker::Prefill {
                    key,
                    work: self.work()?,
                    deadline_ms,
                })
            }
            Order::Pull { .. } => {
                let fresh = self.answer.get(self.delivered_before..).unwrap_or_default();
                let first = fresh
                    .iter()
                    .map(|token| TokenOut {
                        token: *token,
                        logprobs: None,
                    })
                    .collect();
                Some(ToWorker::Pull {
                    key,
                    ticket: self.ticket.clone()?,
                    first,
                })
            }
            Order::Release => Some(ToWorker::Release { key }),
            Order::Close => Some(ToWorker::Close { key }),
        }
    }

    fn work(&self) -> Option<wire::Work> {
        let before = self.answer.get(..self.delivered_before)?;
        Some(self.job.as_ref()?.work(self.index, before))
    }
}
