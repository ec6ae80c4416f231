//! An engine with its queue of commands and the sink of its events, one turn after the other. Its thread takes turns as fast as they
//! come; a simulation lets virtual time pass between a step's beginning and its end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, TryRecvError};

use crate::engine::{Engine, Next, panic_text};
use crate::event::{Command, DownReason, EngineEvent};
use crate::scheduler::StepPlan;

/// Receives the engine's events, where the engine runs. Must not block: the next step waits for it.
pub type EventSink = Arc<dyn Fn(EngineEvent) + Send + Sync>;

/// Says that there may be something to do.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// What an engine's turn is.
#[derive(Debug)]
pub enum Turn {
    /// A step has begun; [`Driven::finish`] computes and tells it. Commands that come meanwhile are taken after it.
    Step(StepPlan),
    /// Nothing can change before a command comes.
    Idle,
    /// It is down, or told to end: nothing is left but [`Driven::end`].
    Ended(DownReason),
}

/// An engine as whoever runs it has it.
pub struct Driven {
    engine: Engine,
    queue: Receiver<Command>,
    sink: EventSink,
    /// Dropped last: whoever waits for its end may rely on `Down` having been said and the sink being gone.
    alive: Sender<()>,
}

impl Driven {
    pub(crate) fn new(engine: Engine, queue: Receiver<Command>, sink: EventSink, alive: Sender<()>) -> Self {
        Self {
            engine,
            queue,
            sink,
            alive,
        }
    }

    /// Takes the commands that wait, and begins a step if there is one.
    pub fn begin(&mut self) -> Turn {
        loop {
            if let Some(why) = self.take_commands() {
                return Turn::Ended(why);
            }
            if self.engine.watch().is_ending() {
                return Turn::Ended(DownReason::Shutdown);
            }
            match self.engine.begin() {
                Next::Step(plan) => return Turn::Step(plan),
                Next::Say(event) => {
                    if let Some(why) = self.tell(Some(event)) {
                        return Turn::Ended(why);
                    }
                }
                Next::Nothing => return Turn::Idle,
            }
        }
    }

    /// Computes the step that [`Driven::begin`] began, and tells what came of it. `Some` if the engine has gone down by it.
    pub fn finish(&mut self, plan: &StepPlan) -> Option<DownReason> {
        let event = self.engine.compute(plan);
        self.tell(Some(event))
    }

    /// Blocks until there is a command, and takes it.
    pub(crate) fn wait(&mut self) -> Option<DownReason> {
        // Nothing can change without a command, and the handle's end closes the queue: this wait needs no deadline.
        let command = self.queue.recv().unwrap_or(Command::Shutdown);
        let event = self.engine.apply(command);
        self.tell(event)
    }

    /// Ends it, however that came about. The backend is gone when `Down` is said.
    pub fn end(mut self, why: DownReason) {
        // In the engine's care, and not while a panic unwinds.
        self.engine.apply(Command::Shutdown);
        // From here on nobody can send: a command is either answered by this `Down` or refused.
        drop(self.queue);
        match &why {
            DownReason::Shutdown => tracing::debug!("engine: shut down"),
            why => tracing::error!(%why, "engine: down"),
        }
        let sink = self.sink;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(move || sink(EngineEvent::Down { why }))) {
            tracing::error!(
                panic = panic_text(panic.as_ref()),
                "the engine's event sink panicked"
            );
        }
        drop(self.alive);
    }

    /// At most one queue's worth, so that a flood of commands cannot keep steps from running.
    fn take_commands(&mut self) -> Option<DownReason> {
        for _ in 0..self.queue.capacity().unwrap_or(1) {
            let command = match self.queue.try_recv() {
                Ok(command) => command,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => Command::Shutdown,
            };
            let event = self.engine.apply(command);
            if let Some(why) = self.tell(event) {
                return Some(why);
            }
        }
        None
    }

    /// Hands an event to the sink. `Some` if the engine has gone down (which is for [`Driven::end`] to say).
    fn tell(&self, event: Option<EngineEvent>) -> Option<DownReason> {
        match event {
            Some(EngineEvent::Down { why }) => return Some(why),
            Some(event) => (self.sink)(event),
            None => {}
        }
        None
    }
}
