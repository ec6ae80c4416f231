//! KV moves over UCX active messages.
