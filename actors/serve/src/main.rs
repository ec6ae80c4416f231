//! The innkeeper binary.
fn main() {}
