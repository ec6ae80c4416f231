//! The innkeeper binary: typed configuration, composition root, command line.
//!
//! It is a library only so that its own tests can ask for its feature `faults`, which the program then has too.

mod admin;
mod certs;
mod chat;
mod cli;
mod compose;
mod config;
mod cors;
mod doctor;
mod door;
mod explain;
#[cfg(feature = "faults")]
mod faults;
mod files;
mod flags;
mod http;
mod keys;
mod leave;
mod log;
mod memory;
mod output;
mod paths;
mod ports;
mod processes;
mod progress;
mod ready;
mod renewal;
mod rooms;
mod signals;
mod telemetry;
mod text;
mod top;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;

use cli::{Cli, Command};
use telemetry::Telemetry;

/// Does what the command line says. Failures are told in one line on standard error.
#[must_use]
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    match perform(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::reader_left(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("innkeeper: {}", told(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error with its causes. Some libraries say their cause themselves: nothing is said twice.
fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.contains(&cause) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&cause);
    }
    text
}

fn perform(cli: &Cli) -> Result<()> {
    let config = cli.load_config()?;
    let is_node = match &cli.command {
        Command::Up(args) => !args.processes,
        other => matches!(other, Command::Gateway(_) | Command::Worker(_)),
    };
    let telemetry = Telemetry::new(&config.tracing).filter(|_| is_node);
    log::init(&config.log, telemetry.as_ref())?;
    files::raise_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("tokio")?;
    let with_stdin = cli.stops_with_stdin();
    let ended = runtime.block_on(async {
        match &cli.command {
            Command::Up(args) if args.processes => processes::up(&config, args, with_stdin).await,
            Command::Up(args) => compose::up(&config, args, telemetry, with_stdin).await,
            Command::Gateway(_) => compose::gateway(&config, telemetry, with_stdin).await,
            Command::Worker(_) => compose::worker(&config, telemetry, with_stdin).await,
            Command::Chat(args) => chat::run(&config, args).await,
            Command::Rooms(args) => rooms::run(&config, args).await,
            Command::Explain(args) => explain::run(&config, args).await,
            Command::Drain(args) => leave::drain(&config, args).await,
            Command::Undrain(args) => leave::undrain(&config, args).await,
            Command::Role(args) => leave::role(&config, args).await,
            Command::Top(_) => top::run(&config).await,
            Command::Doctor => doctor::run(&config).await,
            Command::Config => Ok(output::print(&config.to_toml()?)?),
            Command::Certs(args) => certs::make(args),
            Command::Key { name } => keys::print(name),
            Command::Wait { ms } => {
                tokio::time::sleep(Duration::from_millis(*ms)).await;
                Ok(())
            }
        }
    });
    // Not waited for: a read of standard input cannot be cancelled, and would keep the process for ever.
    runtime.shutdown_background();
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let cause = || anyhow::anyhow!("not a GGUF file");
        assert_eq!(
            told(
                &cause()
                    .context("model.gguf: not a GGUF file")
                    .context("the model")
            ),
            "the model: model.gguf: not a GGUF file"
        );
        assert_eq!(told(&cause().context("the model")), "the model: not a GGUF file");
    }
}
