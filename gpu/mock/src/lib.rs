//! A timed backend without a model, whose KV carries its room's pattern.
