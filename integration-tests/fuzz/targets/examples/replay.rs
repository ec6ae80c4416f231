//! Runs one input through one target: `replay TARGET FILE...`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let Some(target) = fuzz_targets::TARGETS.iter().find(|target| target.name == name) else {
        let names: Vec<&str> = fuzz_targets::TARGETS.iter().map(|target| target.name).collect();
        eprintln!("there is no target `{name}`: there are {}", names.join(", "));
        return ExitCode::FAILURE;
    };
    for file in arguments {
        match std::fs::read(&file) {
            Ok(bytes) => (target.run)(&bytes),
            Err(error) => {
                eprintln!("{file}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
