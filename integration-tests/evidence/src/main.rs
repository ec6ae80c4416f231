//! `evidence make TARGET`: keeps what was recorded below the target folder, and makes the page. `evidence stamp`: prints what a
//! recording by something that is not Rust begins with.

use std::path::Path;
use std::process::ExitCode;

use evidence::Stamp;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["make", target] => evidence::make(Path::new(target)).map_err(|error| error.to_string()),
        ["stamp"] => serde_json::to_string(&Stamp::now())
            .map(|stamp| println!("{{\"recorded\":{stamp}}}"))
            .map_err(|error| error.to_string()),
        _ => Err("usage: evidence make TARGET | evidence stamp".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("evidence: {error}");
            ExitCode::FAILURE
        }
    }
}
