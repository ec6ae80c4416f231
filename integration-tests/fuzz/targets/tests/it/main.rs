//! Every file of the corpus, and changes of them that are the same in every run.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod changes;
mod replay;
