//! What a KV move is, and the in-process one.
