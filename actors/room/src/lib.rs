//! What a request's room is, and every decision about it. No I/O, no clock.
