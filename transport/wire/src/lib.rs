//! The node-to-node messages: bytes to types and back.
