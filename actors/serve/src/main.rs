//! The program; all of it is in the library of the same name.

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

/// A request is many small things that live for milliseconds, on several threads.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    innkeeper::run()
}
