//! Tests of the whole: the right tokens from the real model.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod tokens;
