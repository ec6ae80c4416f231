//! The engine's thread. It owns the engine, takes commands from a bounded queue between steps, and hands every event to a sink. It
//! touches no socket and no lock that others hold, and never unwinds out: whatever happens, its last event is one `Down`.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, TrySendError, bounded};

use crate::backend::Backend;
use crate::config::EngineConfig;
use crate::engine::{Clock, Engine, panic_text};
use crate::event::{Command, DownReason, EngineEvent};
use crate::interrupt::Watch;

/// Receives the engine's events, on the engine's thread. Must not block: the next step waits for it.
pub type EventSink = Arc<dyn Fn(EngineEvent) + Send + Sync>;

/// A command that was not taken.
#[derive(Copy, Clone, Eq, PartialEq, Debug, thiserror::Error)]
pub enum SendError {
    /// The queue is full: try again after the next event.
    #[error("the engine's command queue is full")]
    Full,
    /// The engine has gone down; `Down` answers this command.
    #[error("the engine is down")]
    Down,
}

/// The engine was still in a step when the caller's patience ended. It ends by itself after that step.
#[derive(Copy, Clone, Eq, PartialEq, Debug, thiserror::Error)]
#[error("the engine's step had not ended after {waited_ms} ms")]
pub struct StillRunning {
    /// How long was waited, in milliseconds.
    pub waited_ms: u64,
}

/// Commands an engine that runs on its own thread. Dropping it ends the engine after the current step, which is cut short if its
/// backend can do that.
pub struct EngineHandle {
    commands: Sender<Command>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
    watch: Arc<Watch>,
    clock: Clock,
}

/// Starts an engine on a thread of its own.
///
/// # Errors
/// When the system gives no thread.
pub fn start(backend: Box<dyn Backend>, config: EngineConfig, sink: EventSink) -> io::Result<EngineHandle> {
    let config = config.at_least_one();
    let engine = Engine::new(backend, config);
    let (watch, clock) = (engine.watch(), engine.clock());
    let (commands, queue) = bounded(config.command_queue as usize);
    let (alive, ended) = bounded(0);
    thread::Builder::new().name("engine".into()).spawn(move || {
        // Dropped last: whoever waits for `ended` may rely on `Down` having been said and the sink being gone.
        let _alive: Sender<()> = alive;
        live(engine, queue, sink);
    })?;
    Ok(EngineHandle {
        commands,
        ended,
        watch,
        clock,
    })
}

impl EngineHandle {
    /// Queues a command, without waiting. A stop may interrupt the step in progress: see [`Interrupt`](crate::Interrupt).
    ///
    /// # Errors
    /// When the queue is full or the engine is down.
    pub fn send(&self, command: Command) -> Result<(), SendError> {
        // Told before the command is queued: the engine settles it when it applies the command.
        let stop = if let Command::Stop { key } = command {
            Some(key)
        } else {
            None
        };
        if let Some(key) = stop {
            self.watch.stop_queued(key);
        }
        self.commands.try_send(command).map_err(|error| {
            if let Some(key) = stop {
                self.watch.stop_settled(key);
            }
            match error {
                TrySendError::Full(_) => SendError::Full,
                TrySendError::Disconnected(_) => SendError::Down,
            }
        })
    }

    /// How long the step in progress has lasted; zero between steps. A step that hangs cannot be ended: nothing frees what it holds,
    /// and all that is left to do is to give up this engine, with its pool.
    #[must_use]
    pub fn step_lasts(&self) -> Duration {
        let began = self.watch.began();
        began.map_or(Duration::ZERO, |began| (self.clock)().saturating_sub(began))
    }

    /// Ends the engine, and waits for that (until the current step has ended or is cut short) for up to `patience`.
    ///
    /// # Errors
    /// When it takes longer. The engine ends nevertheless.
    pub fn shutdown(&self, patience: Duration) -> Result<(), StillRunning> {
        self.end();
        match self.ended.recv_timeout(patience) {
            Err(RecvTimeoutError::Disconnected) => Ok(()),
            Ok(()) | Err(RecvTimeoutError::Timeout) => Err(StillRunning {
                waited_ms: u64::try_from(patience.as_millis()).unwrap_or(u64::MAX),
            }),
        }
    }

    fn end(&self) {
        // Even if the queue has no room for the command that says so.
        self.watch.end_queued();
        // Wakes an idle engine. A full queue needs no waking, and a closed one has ended.
        let _ = self.commands.try_send(Command::Shutdown);
    }
}

impl Drop for EngineHandle {
    fn drop(&mut self) {
        self.end();
    }
}

/// The thread's whole life. The backend is gone when `Down` is said.
fn live(mut engine: Engine, queue: Receiver<Command>, sink: EventSink) {
    let why = match catch_unwind(AssertUnwindSafe(|| serve(&mut engine, &queue, &sink))) {
        Ok(why) => why,
        Err(panic) => DownReason::Panic(panic_text(panic.as_ref())),
    };
    // However it ended: the backend goes now, in the engine's care, and not while a panic unwinds.
    engine.apply(Command::Shutdown);
    // From here on nobody can send: a command is either answered by this `Down` or refused.
    drop(queue);
    match &why {
        DownReason::Shutdown => tracing::debug!("engine: shut down"),
        why => tracing::error!(%why, "engine: down"),
    }
    if let Err(panic) = catch_unwind(AssertUnwindSafe(move || sink(EngineEvent::Down { why }))) {
        tracing::error!(
            panic = panic_text(panic.as_ref()),
            "the engine's event sink panicked"
        );
    }
}

/// Serves commands and runs steps until the engine goes down; says why. Every event but `Down` goes to the sink.
fn serve(engine: &mut Engine, queue: &Receiver<Command>, sink: &EventSink) -> DownReason {
    let watch = engine.watch();
    loop {
        // At most one queue's worth, so that a flood of commands cannot keep steps from running.
        for _ in 0..queue.capacity().unwrap_or(1) {
            let command = match queue.try_recv() {
                Ok(command) => command,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => Command::Shutdown,
            };
            if let Some(why) = tell(engine.apply(command), sink) {
                return why;
            }
        }
        if watch.is_ending() {
            return DownReason::Shutdown;
        }
        let event = engine.step();
        let idle = event.is_none();
        if let Some(why) = tell(event, sink) {
            return why;
        }
        if idle {
            // Nothing can change without a command, and the handle's end closes the queue: this wait needs no deadline.
            let command = queue.recv().unwrap_or(Command::Shutdown);
            if let Some(why) = tell(engine.apply(command), sink) {
                return why;
            }
        }
    }
}

/// Hands an event to the sink. `Some` if the engine has gone down (which is for `live` to say).
fn tell(event: Option<EngineEvent>, sink: &EventSink) -> Option<DownReason> {
    match event {
        Some(EngineEvent::Down { why }) => return Some(why),
        Some(event) => sink(event),
        None => {}
    }
    None
}
