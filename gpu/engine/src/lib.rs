//! The batch scheduler, the paged KV pool and the engine thread.
