//! QUIC links between nodes: hello, epochs, heartbeats.
