//! Measures one thing side by side, and prints a table: `bench tracing [--starts N] [--rounds N] [--seconds N] [--streams N]`.

use std::process::ExitCode;
use std::time::Duration;

use integration_tests::bench::{TracingOptions, tracing};

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some("tracing") {
        return wrong("the benchmarks of clusters are: tracing");
    }
    let mut options = TracingOptions::default();
    while let Some(argument) = arguments.next() {
        let number: usize = match arguments.next().map(|number| number.parse()) {
            Some(Ok(number)) if number > 0 => number,
            _ => return wrong(&format!("{argument} needs a number")),
        };
        match argument.as_str() {
            "--starts" => options.starts = number,
            "--rounds" => options.rounds = number,
            "--seconds" => options.lasts = Duration::from_secs(number as u64),
            "--streams" => options.streams = number,
            _ => {
                return wrong(&format!(
                    "{argument}? It takes --starts, --rounds, --seconds and --streams"
                ));
            }
        }
    }
    println!("{}", tracing(options).await);
    ExitCode::SUCCESS
}

fn wrong(what: &str) -> ExitCode {
    eprintln!("bench: {what}");
    ExitCode::FAILURE
}
