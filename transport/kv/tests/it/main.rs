//! The in-process transfer and the fault-injecting wrapper, through the trait.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod dropped;
mod faulty;
mod inproc;
mod odd;
mod world;
