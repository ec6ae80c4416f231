//! One room with its content: the tokens delivered, the ticket, the tokens of the report being handled.

use std::sync::Arc;

use room::{Attempt, Generation, NodeId, Order, Report, Room, Time, WaitsFor};
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
    /// What prefill published in the current attempt, and which worker that was.
    ticket: Option<(NodeId, Ticket)>,
    /// Tokens of the report being handled.
    batch: Vec<TokenOut>,
    /// Tokens of the prompt that the first worker to compute it found in its cache.
    found: Option<u32>,
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
            found: None,
        }
    }

    /// Whether its first owner is dead.
    #[cfg(feature = "faults")]
    pub(super) fn is_inherited(&self) -> bool {
        self.job.is_none()
    }

    /// Tokens of the prompt that did not have to be computed, once that is known.
    pub(super) fn found(&self) -> Option<u32> {
        self.found
    }

    /// Keeps the content of a worker's news and gives the reports that the room decides on. What is not of the current attempt, or not
    /// from the worker whose turn it is, is judged by the room as well, but replaces no content.
    pub(super) fn reports(&mut self, from: NodeId, generation: Generation, news: News) -> Vec<Report> {
        let is_current = generation == self.room.generation() || planted!(GenerationNotChecked);
        match news {
            News::Reserved { cached_tokens, .. } if is_current && self.computes(from) => {
                let prompt = self
                    .job
                    .as_ref()
                    .map_or(0, |job| convert::count(job.prompt.len()));
                self.found.get_or_insert(cached_tokens.min(prompt));
                Vec::new()
            }
            News::Reserved { cached_blocks, .. } => vec![Report::Reserved { cached_blocks }],
            News::Refused(why) => vec![Report::Refused(why)],
            News::Progress { positions } => vec![Report::Progress { positions }],
            News::Tokens {
                from: first,
                tokens,
                finish,
            } => {
                let count = convert::count(tokens.len());
                self.batch = if is_current { tokens } else { Vec::new() };
                let tokens = (count > 0).then_some(Report::Tokens { from: first, count });
                let total = first.saturating_add(count);
                let finished = finish.map(|finish| Report::Finished { finish, total });
                tokens.into_iter().chain(finished).collect()
            }
            News::Published(ticket) => {
                if is_current && self.computes(from) {
                    self.ticket = Some((from, ticket));
                }
                vec![Report::Published]
            }
            News::Pulled => vec![Report::Pulled],
            News::Failed(why) => vec![Report::Failed(why)],
            News::Closed => vec![Report::Closed],
            News::Held => vec![Report::Held],
            News::NotHeld => vec![Report::NotHeld],
        }
    }

    fn computes(&self, worker: NodeId) -> bool {
        matches!(self.room.waits_for(), WaitsFor::Prompt { worker: waited_for, .. } if waited_for == worker)
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
                if !planted!(RetryForgetsDelivered) {
                    self.delivered_before = self.answer.len();
                }
                self.ticket = None;
                let deadline_ms = convert::remaining_ms(work.deadline, now);
                Some(ToWorker::Reserve {
                    key,
                    work: self.work()?,
                    until: work.until,
                    deadline_ms,
                })
            }
            Order::Prefill { work, .. } => {
                let deadline_ms = convert::remaining_ms(work.deadline, now);
                Some(ToWorker::Prefill {
                    key,
                    work: self.work()?,
                    until: work.until,
                    deadline_ms,
                })
            }
            Order::Pull { from } => {
                let (_, ticket) = self.ticket.as_ref().filter(|(node, _)| *node == from)?;
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
                    ticket: ticket.clone(),
                    first,
                })
            }
            Order::Allow { until } => Some(ToWorker::Allow { key, until }),
            Order::Release => Some(ToWorker::Release { key }),
            Order::Close => Some(ToWorker::Close { key }),
        }
    }

    fn work(&self) -> Option<wire::Work> {
        let before = self.answer.get(..self.delivered_before)?;
        Some(self.job.as_ref()?.work(self.index, before))
    }
}

#[cfg(test)]
mod tests;
