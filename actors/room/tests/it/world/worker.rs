//! The engine and the transfer of a worker, each in its own time.

use room::{Attempt, EngineInput, Finish, HostCommand, HostInput, NodeId, Span, TransferInput};

use crate::world::{BLOCK_TOKENS, Event, LATENCY, Sequence, Worker, World};

impl World {
    /// The engine and the transfer, each in its own time.
    pub(super) fn host_acts(&mut self, node: NodeId, command: HostCommand) {
        match command {
            HostCommand::StartPrefill {
                attempt,
                blocks,
                whole,
                until,
                ..
            } => {
                self.start(node, attempt, blocks.len(), false, !whole, until);
            }
            HostCommand::StartDecode {
                attempt,
                blocks,
                until,
                ..
            } => {
                self.start(node, attempt, blocks.len(), true, false, until);
            }
            HostCommand::Allow { attempt, until } => {
                if let Some(sequence) = self.sequence(node, attempt) {
                    sequence.until = sequence.until.max(until);
                    if std::mem::take(&mut sequence.paused) {
                        self.after(LATENCY, Event::Engine(node, attempt));
                    }
                }
            }
            HostCommand::Grow { attempt, blocks } => {
                if let Some(sequence) = self.sequence(node, attempt) {
                    sequence.blocks += blocks.len();
                    sequence.waits = false;
                    self.after(LATENCY, Event::Engine(node, attempt));
                }
            }
            HostCommand::StopEngine { attempt } => {
                if let Some(sequence) = self.sequence(node, attempt) {
                    sequence.stopping = true;
                    self.after(Span::from_millis(3), Event::Engine(node, attempt));
                }
            }
            HostCommand::Offer { attempt, .. } => {
                self.worker(node).offers.insert(attempt);
                self.local_after(1, node, attempt, TransferInput::Offered);
            }
            HostCommand::Withdraw { attempt } => {
                self.worker(node).offers.remove(&attempt);
                self.local_after(4, node, attempt, TransferInput::Withdrawn);
            }
            HostCommand::Read { attempt, .. } => {
                self.worker(node).reads.insert(attempt);
                let ok = self.workers.values().any(|w| w.up && w.offers.contains(&attempt));
                self.local_after(
                    if ok { 5 } else { 500 },
                    node,
                    attempt,
                    TransferInput::ReadEnded { ok },
                );
            }
            HostCommand::CancelRead { attempt } => {
                self.local_after(2, node, attempt, TransferInput::ReadEnded { ok: false });
            }
            HostCommand::Tell { .. } | HostCommand::AnswerDigest { .. } => unreachable!("performed before"),
        }
    }

    pub(super) fn worker(&mut self, node: NodeId) -> &mut Worker {
        self.workers.get_mut(&node).unwrap()
    }

    pub(super) fn sequence(&mut self, node: NodeId, attempt: Attempt) -> Option<&mut Sequence> {
        self.workers.get_mut(&node)?.engine.get_mut(&attempt)
    }

    pub(super) fn local_after(&mut self, millis: u64, node: NodeId, attempt: Attempt, event: TransferInput) {
        self.after(
            Span::from_millis(millis),
            Event::Local(node, HostInput::Transfer { attempt, event }),
        );
    }

    /// A read ends once.
    pub(super) fn local(&mut self, node: NodeId, input: HostInput) {
        let Some(worker) = self.workers.get_mut(&node) else {
            return;
        };
        if let HostInput::Transfer {
            attempt,
            event: TransferInput::ReadEnded { .. },
        } = &input
            && !worker.reads.remove(attempt)
        {
            return;
        }
        self.host_input(node, input);
    }

    pub(super) fn start(
        &mut self,
        node: NodeId,
        attempt: Attempt,
        blocks: usize,
        computed: bool,
        first_only: bool,
        until: u32,
    ) {
        let work = self.works[&attempt];
        let sampled = u32::from(computed);
        let sequence = Sequence {
            next: work.delivered + sampled,
            positions: work.positions + sampled,
            blocks,
            computed,
            first_only,
            stopping: false,
            waits: false,
            until,
            paused: false,
        };
        assert!(
            self.worker(node).engine.insert(attempt, sequence).is_none(),
            "started twice"
        );
        self.after(Span::from_millis(4), Event::Engine(node, attempt));
    }

    pub(super) fn engine_step(&mut self, node: NodeId, attempt: Attempt) {
        let length = self.guests[usize::try_from(attempt.room.seq).unwrap()].length;
        let max = self.works[&attempt].max_positions;
        let Some(sequence) = self.sequence(node, attempt) else {
            return;
        };
        let room_for = u32::try_from(sequence.blocks).unwrap() * BLOCK_TOKENS;
        let event = if sequence.stopping {
            EngineInput::Stopped
        } else if sequence.waits {
            return;
        } else if !sequence.computed {
            sequence.computed = true;
            EngineInput::Computed {
                positions: sequence.positions,
            }
        } else if sequence.next >= sequence.until {
            sequence.paused = true;
            return;
        } else if sequence.positions > room_for {
            sequence.waits = true;
            EngineInput::NeedBlocks { n: 1 }
        } else {
            // Where the answer ends, the end itself is sampled: no token of the answer.
            let count = u32::from(sequence.next < length);
            sequence.next += count;
            sequence.positions += count;
            let finish = match sequence.next < length {
                true => None,
                false if sequence.positions < max => Some(Finish::Stop),
                false => Some(Finish::Length),
            };
            EngineInput::Sampled { count, finish }
        };
        let out = match event {
            EngineInput::Stopped => true,
            EngineInput::Sampled { finish, .. } => finish.is_some() || sequence.first_only,
            _ => false,
        };
        let waits = sequence.waits;
        if out {
            self.worker(node).engine.remove(&attempt);
        } else if !waits {
            self.after(Span::from_millis(2), Event::Engine(node, attempt));
        }
        self.host_input(node, HostInput::Engine { attempt, event });
    }
}
