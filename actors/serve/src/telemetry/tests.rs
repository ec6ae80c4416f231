//! What reaches a collector, and that nobody waits for one.
