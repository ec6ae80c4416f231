//! Helpers for the whole-cluster tests.
