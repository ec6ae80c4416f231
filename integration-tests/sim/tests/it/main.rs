//! Simulations in the test command: a hundred seeds hold, and a seed is the same in every process.

mod planted;
mod regressions;
mod seeds;
