//! The innkeeper binary: typed configuration, composition root, command line.

mod admin;
mod chat;
mod cli;
mod compose;
mod config;
mod doctor;
mod door;
mod http;
mod log;
mod paths;
mod processes;
mod progress;
mod ready;
mod rooms;
mod signals;
mod text;
mod trace;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("innkeeper: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    let config = cli.load_config()?;
    log::init(&config.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("tokio")?;
    let ended = runtime.block_on(async {
        match &cli.command {
            Command::Up(args) if args.processes => processes::up(&config, args).await,
            Command::Up(args) => compose::up(&config, args).await,
            Command::Gateway(_) => compose::gateway(&config, cli.stops_with_stdin()).await,
            Command::Worker(_) => compose::worker(&config, cli.stops_with_stdin()).await,
            Command::Chat(args) => chat::run(&config, args).await,
            Command::Rooms(args) => rooms::run(&config, args).await,
            Command::Doctor => doctor::run(&config).await,
            Command::Config => {
                print!("{}", config.to_toml()?);
                Ok(())
            }
        }
    });
    // Not waited for: a read of standard input cannot be cancelled, and would keep the process for ever.
    runtime.shutdown_background();
    ended
}
