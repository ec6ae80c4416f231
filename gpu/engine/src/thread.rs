//! The engine's thread, and the handle that commands an engine wherever it runs. The thread touches no socket and no lock that others
//! hold, and never unwinds out: whatever happens, its last event is one `Down`.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};

use crate::backend::Backend;
use crate::config::EngineConfig;
use crate::driven::{Driven, EventSink, Turn, Wake};
use crate::engine::{Clock, Engine, panic_text};
use crate::event::{Command, DownReason};
use crate::interrupt::Watch;

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

/// Commands an engine that runs elsewhere. Dropping it ends the engine after the current step, which is cut short if its
/// backend can do that.
pub struct EngineHandle {
    commands: Sender<Command>,
    /// Disconnected when the engine has ended.
    ended: Receiver<()>,
    watch: Arc<Watch>,
    clock: Clock,
    wake: Wake,
}

/// Starts an engine on a thread of its own.
///
/// # Errors
/// When the system gives no thread.
pub fn start(backend: Box<dyn Backend>, config: EngineConfig, sink: EventSink) -> io::Result<EngineHandle> {
    let config = config.at_least_one();
    // Its thread waits on the queue itself.
    let wake: Wake = Arc::new(|| {});
    let (handle, driven) = connect(Engine::new(backend, config), config, sink, wake);
    thread::Builder::new()
        .name("engine".into())
        .spawn(move || live(driven))?;
    Ok(handle)
}

/// An engine for whoever has no thread to give and calls it: a simulation. `clock` tells how long steps take; `wake` is called when
/// there may be something to do for an engine that was [idle](crate::Turn::Idle). It must not block.
#[must_use]
pub fn drive(
    backend: Box<dyn Backend>,
    config: EngineConfig,
    sink: EventSink,
    clock: Clock,
    wake: Wake,
) -> (EngineHandle, Driven) {
    let config = config.at_least_one();
    connect(Engine::with_clock(backend, config, clock), config, sink, wake)
}

/// An engine and its handle, with the queue between them.
fn connect(engine: Engine, config: EngineConfig, sink: EventSink, wake: Wake) -> (EngineHandle, Driven) {
    let (commands, queue) = bounded(config.command_queue as usize);
    let (alive, ended) = bounded(0);
    let handle = EngineHandle {
        commands,
        ended,
        watch: engine.watch(),
        clock: engine.clock(),
        wake,
    };
    (handle, Driven::new(engine, queue, sink, alive))
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
        })?;
        (self.wake)();
        Ok(())
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
        (self.wake)();
    }
}

impl Drop for EngineHandle {
    fn drop(&mut self) {
        self.end();
    }
}

/// The thread's whole life.
fn live(mut driven: Driven) {
    let why = match catch_unwind(AssertUnwindSafe(|| serve(&mut driven))) {
        Ok(why) => why,
        Err(panic) => DownReason::Panic(panic_text(panic.as_ref())),
    };
    driven.end(why);
}

/// Serves until the engine goes down; says why.
fn serve(driven: &mut Driven) -> DownReason {
    loop {
        let down = match driven.begin() {
            Turn::Step(plan) => driven.finish(&plan),
            Turn::Idle => driven.wait(),
            Turn::Ended(why) => Some(why),
        };
        if let Some(why) = down {
            return why;
        }
    }
}
